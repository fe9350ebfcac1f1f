package memory

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

func TestSources(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"run.sh", "conf.yml", "code/train.py", "code/model/net.py", "code/notes.txt", "other/far.py"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name            string
		program, script string
		command, args   []string
		want            string
	}{
		{"files that arguments name", "/bin/bash", "", []string{"bash", "run.sh", "-v", "code"}, []string{"--config=" + dir + "/conf.yml"}, "conf.yml run.sh"},
		{"beside the script", dir + "/bin/python3", dir + "/code/train.py", []string{"python3", "code/train.py"}, nil, "code/model/net.py code/train.py"},
		{"in the working directory of -m", dir + "/bin/python3.12", "", []string{"python3", "-m", "code.train"}, nil,
			"code/model/net.py code/train.py other/far.py"},
		{"in the working directory of -c", dir + "/bin/python3", "-c", []string{"python3", "-c", "import other"}, nil,
			"code/model/net.py code/train.py other/far.py"},
		{"nothing on this machine", dir + "/bin/python3", "/nowhere/train.py", []string{"python3", "/nowhere/train.py"}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := soundFacts(1)
			facts[0].Program.Path, facts[0].Script = tt.program, nil
			if tt.script != "" {
				facts[0].Script = &job.ScriptFact{PathFact: job.PathFact{Path: tt.script}}
			}
			s := job.Spec{Command: tt.command, Workdir: dir, Trial: job.Trial{Args: tt.args}}
			all := sources(s, nil, facts)
			if all == nil {
				t.Fatal("too many sources")
			}
			have := slices.Sorted(maps.Keys(all))
			for i := range have {
				have[i] = strings.TrimPrefix(have[i], dir+"/")
			}
			if strings.Join(have, " ") != tt.want {
				t.Errorf("sources %q, want %s", have, tt.want)
			}
		})
	}
}

func TestPythonFiles(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	file := &fstest.MapFile{Data: []byte("x"), ModTime: at}
	tree := fstest.MapFS{
		"train.py": file, "data.csv": file, "a/b/c/d/deep.py": file, "a/b/c/d/e/deeper.py": file,
		".git/hook.py": file, "venv/pyvenv.cfg": file, "venv/lib/site.py": file, "a/fast.so": file,
	}
	files, looked, ok := pythonFiles(tree, SourceDepth, SourceEntries)
	have := slices.Sorted(maps.Keys(files))
	if !ok || !slices.Equal(have, []string{"a/b/c/d/deep.py", "a/fast.so", "train.py"}) || files["train.py"] != (mark{Bytes: 1, Time: at}) {
		t.Errorf("files %v, %v", files, ok)
	}
	if _, _, ok := pythonFiles(tree, SourceDepth, looked); !ok {
		t.Errorf("%d entries are more than %d", looked, looked)
	}
	if _, n, ok := pythonFiles(tree, SourceDepth, looked-1); ok || n != looked-1 {
		t.Errorf("of %d entries, %d were looked at, %v", looked, n, ok)
	}
	files, _, ok = pythonFiles(tree, 1, SourceEntries)
	if have := slices.Sorted(maps.Keys(files)); !ok || !slices.Equal(have, []string{"train.py"}) {
		t.Errorf("files directly in it %q, %v", have, ok)
	}
	for i := range SourceEntries {
		tree[fmt.Sprintf("img/%d.png", i)] = file
	}
	if _, _, ok := pythonFiles(tree, SourceDepth, SourceEntries); ok {
		t.Error("too many entries were not told")
	}
}

// TestSourcesOfTheEnvironment: the files in the directories of PYTHONPATH and LD_LIBRARY_PATH count. So does
// the time at which a package was installed for the job's Python.
func TestSourcesOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"mine/model/net.py", "mine/notes.txt", "lib/libx.so.1", "lib/x.h", "work/rel/near.py", "elsewhere/far.py", "home/.local/lib/python3.11/site-packages/a.py",
		"conda/lib/python3.11/site-packages/torch/torch.py",
	} {
		write(name, name)
	}
	if err := os.Symlink("libx.so.1", filepath.Join(dir, "lib/libx.so")); err != nil {
		t.Fatal(err)
	}
	facts := soundFacts(1)
	facts[0].Program.Path, facts[0].Script = filepath.Join(dir, "conda/bin/python3"), nil
	spec := job.Spec{Command: []string{"python3", "-m", "x"}, Workdir: filepath.Join(dir, "work")}
	env := []string{"PYTHONPATH=" + dir + "/mine:rel:" + dir + "/mine", "LD_LIBRARY_PATH=" + dir + "/lib:" + dir + "/nowhere", "HOME=" + dir + "/home"}
	before := sources(spec, env, facts)
	have := slices.Sorted(maps.Keys(before))
	for i := range have {
		have[i] = strings.TrimPrefix(have[i], dir+"/")
	}
	if want := "conda/lib/python3.11/site-packages home/.local/lib/python3.11/site-packages lib/libx.so lib/libx.so.1 mine/model/net.py work/rel/near.py"; strings.Join(have, " ") != want {
		t.Errorf("sources %q, want %s", have, want)
	}
	for _, name := range []string{"mine/model/net.py", "lib/libx.so.1", "conda/lib/python3.11/site-packages/numpy.py"} {
		write(name, "changed")
		if after := sources(spec, env, facts); maps.Equal(before, after) {
			t.Errorf("a change of %s is not seen", name)
		} else {
			before = after
		}
	}

	// The job's own variables take precedence over the environment's.
	env = environ.Overlay(env, []string{"PYTHONPATH=" + dir + "/elsewhere"}, []string{"LD_LIBRARY_PATH="})
	all := sources(spec, env, facts)
	if _, ok := all[dir+"/elsewhere/far.py"]; !ok || len(all) != 4 { // with rel/near.py, of the working directory
		t.Errorf("sources %q", slices.Sorted(maps.Keys(all)))
	}
}
