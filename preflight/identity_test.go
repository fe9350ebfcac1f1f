package preflight

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

	"github.com/gangrun/gangrun/internal/job"
)

func TestIdentity(t *testing.T) {
	type thing struct {
		spec    job.Spec
		facts   []job.Facts
		sources prints
	}
	make := func() *thing {
		th := &thing{spec: testSpec(), facts: soundFacts(2), sources: prints{"/w/run.sh": {Bytes: 3}}}
		th.spec.Env = map[string]string{"TOKEN": "hush"}
		th.spec.Secret = []string{"TOKEN"}
		return th
	}
	base := make()
	want, ok := identity(base.spec, base.facts, base.sources)
	if !ok || len(want) != 64 {
		t.Fatalf("identity %q, %v", want, ok)
	}
	for name, tt := range map[string]struct {
		same   bool
		change func(*thing)
	}{
		"nothing":   {true, func(*thing) {}},
		"gang size": {true, func(th *thing) { th.spec.Ranks = 9 }},
		"name":      {true, func(th *thing) { th.spec.Name = "x" }},
		"what follows a failure": {true, func(th *thing) {
			th.spec.Retries, th.spec.Policy = 9, map[job.Category]job.Action{job.Hang: job.RetryNever}
		}},
		"resume":                  {true, func(th *thing) { th.spec.Resume = true }},
		"what is shown":           {true, func(th *thing) { th.spec.Output, th.spec.ExitCode = job.OutputAll, job.ExitVerdict }},
		"limits":                  {true, func(th *thing) { th.spec.Timeout, th.spec.Grace = 1, 1 }},
		"stdin":                   {true, func(th *thing) { th.spec.Stdin = job.StdinAll }},
		"cores":                   {true, func(th *thing) { th.facts[0].Cores = 99 }},
		"program":                 {false, func(th *thing) { th.facts[0].Program.SHA256 = "bbbb" }},
		"program of another host": {false, func(th *thing) { th.facts[1].Program.SHA256 = "bbbb" }},
		"script":                  {false, func(th *thing) { th.facts[0].Script.SHA256 = "6666" }},
		"no script":               {false, func(th *thing) { th.facts[0].Script = nil }},
		"hosts":                   {false, func(th *thing) { th.facts[0].Host = "h9" }},
		"argument":                {false, func(th *thing) { th.spec.Command = []string{"train", "train.py", "-v"} }},
		"environment":             {false, func(th *thing) { th.spec.Env["A"] = "1" }},
		"secret value":            {false, func(th *thing) { th.spec.Env["TOKEN"] = "hash" }},
		"workdir":                 {false, func(th *thing) { th.spec.Workdir = "/v" }},
		"checkpoint directory":    {false, func(th *thing) { th.spec.CheckpointDir = "" }},
		"trial settings":          {false, func(th *thing) { th.spec.Trial.Ranks = 2 }},
		"size of an input":        {false, func(th *thing) { th.facts[0].Inputs[0].Bytes++ }},
		"source":                  {false, func(th *thing) { th.sources["/w/run.sh"] = mark{Bytes: 4} }},
	} {
		t.Run(name, func(t *testing.T) {
			th := make()
			tt.change(th)
			have, ok := identity(th.spec, th.facts, th.sources)
			if !ok || (have == want) != tt.same {
				t.Errorf("identity %q, %v, want the same as %q: %v", have, ok, want, tt.same)
			}
		})
	}
	for name, change := range map[string]func(*thing){
		"unknown program":  func(th *thing) { th.facts[1].Program.SHA256 = "" },
		"too many sources": func(th *thing) { th.sources = nil },
	} {
		th := make()
		change(th)
		if key, ok := identity(th.spec, th.facts, th.sources); ok || key != "" {
			t.Errorf("%s: identity %q", name, key)
		}
	}
}

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
		{"beside the script", "/bin/python3", dir + "/code/train.py", []string{"python3", "code/train.py"}, nil, "code/model/net.py code/train.py"},
		{"in the working directory of -m", "/bin/python3.12", "", []string{"python3", "-m", "code.train"}, nil,
			"code/model/net.py code/train.py other/far.py"},
		{"in the working directory of -c", "/bin/python3", "-c", []string{"python3", "-c", "import other"}, nil,
			"code/model/net.py code/train.py other/far.py"},
		{"nothing on this machine", "/bin/python3", "/nowhere/train.py", []string{"python3", "/nowhere/train.py"}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := soundFacts(1)
			facts[0].Program.Path, facts[0].Script = tt.program, nil
			if tt.script != "" {
				facts[0].Script = &job.ScriptFact{PathFact: job.PathFact{Path: tt.script}}
			}
			s := job.Spec{Command: tt.command, Workdir: dir, Trial: job.Trial{Args: tt.args}}
			all := sources(s, facts)
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
		".git/hook.py": file, "venv/pyvenv.cfg": file, "venv/lib/site.py": file,
	}
	files, ok := pythonFiles(tree)
	have := slices.Sorted(maps.Keys(files))
	if !ok || !slices.Equal(have, []string{"a/b/c/d/deep.py", "train.py"}) || files["train.py"] != (mark{1, at}) {
		t.Errorf("files %v, %v", files, ok)
	}
	for i := range sourceEntries {
		tree[fmt.Sprintf("img/%d.png", i)] = file
	}
	if _, ok := pythonFiles(tree); ok {
		t.Error("too many entries were not told")
	}
}
