package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestFingerprint(t *testing.T) {
	type thing struct {
		dir   string
		spec  job.Spec
		env   []string
		facts []job.Facts
		input string
	}
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := func(t *testing.T, path string) { // changes the time, but not the content
		t.Helper()
		at := time.Now().Add(time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("x", ReadFile+1)
	for name, tt := range map[string]struct {
		same   bool
		change func(*testing.T, *thing)
	}{
		"nothing": {true, func(*testing.T, *thing) {}},
		// The code.
		"an imported module":    {false, func(t *testing.T, th *thing) { write(t, th.dir+"/model/net.py", "def f(): return 2") }},
		"a new module":          {false, func(t *testing.T, th *thing) { write(t, th.dir+"/more.py", "") }},
		"its time":              {true, func(t *testing.T, th *thing) { set(t, th.dir+"/model/net.py") }},
		"a file of an argument": {false, func(t *testing.T, th *thing) { write(t, th.dir+"/conf.yml", "lr: 2") }},
		"its time only":         {true, func(t *testing.T, th *thing) { set(t, th.dir+"/conf.yml") }},
		"the time of a large":   {false, func(t *testing.T, th *thing) { set(t, th.dir+"/large.bin") }},
		"no part of it":         {true, func(t *testing.T, th *thing) { write(t, th.dir+"/notes.txt", "changed") }},
		"a checkpoint, unused":  {true, func(t *testing.T, th *thing) { write(t, th.dir+"/ckpt/step-1.pt", "") }},
		"the script elsewhere":  {false, func(t *testing.T, th *thing) { th.facts[1].Script.SHA256 = "6666" }},
		"the program":           {false, func(t *testing.T, th *thing) { th.facts[0].Program.SHA256 = "bbbb" }},
		"the image":             {false, func(t *testing.T, th *thing) { th.facts[0].Image = &job.ImageFact{Digest: "sha256:1"} }},
		"a version": {false, func(t *testing.T, th *thing) {
			th.facts[0].Versions = []job.VersionFact{{Kind: job.VersionPython, Name: "torch", Version: "2.9"}}
		}},
		// The inputs.
		"an input's size": {false, func(t *testing.T, th *thing) { th.facts[0].Inputs[0].Bytes++ }},
		"an input's time": {false, func(t *testing.T, th *thing) { th.facts[0].Inputs[1].Changed = time.Unix(9, 0) }},
		"standard input":  {false, func(t *testing.T, th *thing) { th.input = "file 1:2" }},
		// The job.
		"the command":      {false, func(t *testing.T, th *thing) { th.spec.Command = append(th.spec.Command, "-v") }},
		"ranks":            {false, func(t *testing.T, th *thing) { th.spec.Ranks++ }},
		"a variable":       {false, func(t *testing.T, th *thing) { th.spec.Env = map[string]string{"LR": "2"} }},
		"an inherited one": {false, func(t *testing.T, th *thing) { th.env = append(th.env, "DATA=/d") }},
		"resume":           {false, func(t *testing.T, th *thing) { th.spec.Resume = true }},
		"another batch job": {true, func(t *testing.T, th *thing) {
			th.env = append(th.env, "SLURM_JOB_ID=9", "SLURM_JOB_NODELIST=n[1-2]", "TMPDIR=/tmp/9", "CUDA_VISIBLE_DEVICES=3", "SHLVL=3")
		}},
		"the name": {true, func(t *testing.T, th *thing) { th.spec.Name = "x" }},
		"what follows": {true, func(t *testing.T, th *thing) {
			th.spec.Retries, th.spec.RefuseKnown, th.spec.Preflight = 0, true, job.PreflightStatic
		}},
		"no trial":    {true, func(t *testing.T, th *thing) { th.spec.Trial.Mode = job.TrialOff }},
		"other hosts": {true, func(t *testing.T, th *thing) { th.facts[0].Host, th.facts[1].Host, th.spec.Hosts = "h8", "h9", "h8,h9" }},
		"more hosts":  {true, func(t *testing.T, th *thing) { th.facts = append(th.facts, th.facts[0]) }},
	} {
		t.Run(name, func(t *testing.T) {
			th := &thing{dir: t.TempDir(), spec: testSpec(), env: []string{"PATH=/bin"}, facts: soundFacts(2)}
			th.spec.Command, th.spec.Workdir = []string{"python3", "train.py", "--config=conf.yml", "large.bin"}, th.dir
			th.spec.CheckpointDir = th.dir + "/ckpt"
			for i := range th.facts {
				th.facts[i].Program.Path, th.facts[i].Script.Path = th.dir+"/bin/python3", th.dir+"/train.py"
			}
			for file, text := range map[string]string{"train.py": "import model.net", "model/net.py": "def f(): return 1", "conf.yml": "lr: 1", "large.bin": large, "notes.txt": "", "ckpt/step-0.pt": ""} {
				write(t, filepath.Join(th.dir, file), text)
			}
			before, ok := Fingerprint(th.spec, th.env, th.facts, th.input)
			if !ok || len(before) != 64 {
				t.Fatalf("%q, %v", before, ok)
			}
			tt.change(t, th)
			after, ok := Fingerprint(th.spec, th.env, th.facts, th.input)
			if !ok || (after == before) != tt.same {
				t.Errorf("%q, then %q, %v", before, after, ok)
			}
		})
	}
	t.Run("a checkpoint to resume from", func(t *testing.T) {
		spec, dir := testSpec(), t.TempDir()
		spec.Resume, spec.CheckpointDir = true, dir
		before, ok := Fingerprint(spec, nil, soundFacts(1), "")
		write(t, dir+"/step-1.pt", "")
		if after, _ := Fingerprint(spec, nil, soundFacts(1), ""); !ok || after == before {
			t.Errorf("%q, then %q, %v", before, after, ok)
		}
	})
	t.Run("not known", func(t *testing.T) {
		facts := soundFacts(1)
		facts[0].Program.SHA256 = ""
		mounted := testSpec()
		mounted.Image, mounted.Container.Mounts = "x", []string{"/a:/b"}
		for name, ok := range map[string]bool{
			"program": func() bool { _, ok := Fingerprint(testSpec(), nil, facts, ""); return ok }(),
			"hosts":   func() bool { _, ok := Fingerprint(testSpec(), nil, nil, ""); return ok }(),
			"mounts":  func() bool { _, ok := Fingerprint(mounted, nil, soundFacts(1), ""); return ok }(),
		} {
			if ok {
				t.Errorf("%s: it has a fingerprint", name)
			}
		}
	})
}

// TestReadTotal tests more files than Fingerprint reads.
func TestReadTotal(t *testing.T) {
	dir, all := t.TempDir(), make(prints)
	for i := range ReadTotal/ReadFile + 1 {
		path := filepath.Join(dir, string(rune('A'+i/26))+string(rune('a'+i%26)))
		if err := os.WriteFile(path, make([]byte, ReadFile), 0o600); err != nil {
			t.Fatal(err)
		}
		all.add(path)
	}
	all.read()
	hashed := 0
	for _, m := range all {
		if m.SHA256 != "" {
			hashed++
		}
		if (m.SHA256 == "") == m.Time.IsZero() {
			t.Errorf("%+v", m)
		}
	}
	if hashed != ReadTotal/ReadFile {
		t.Errorf("%d files are read of %d", hashed, len(all))
	}
}
