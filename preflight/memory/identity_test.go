package memory

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestIdentity(t *testing.T) {
	type thing struct {
		spec    job.Spec
		env     []string
		facts   []job.Facts
		sources prints
	}
	make := func() *thing {
		th := &thing{spec: testSpec(), env: []string{"PATH=/bin", "PYTHONPATH=/a:/b"}, facts: soundFacts(2), sources: prints{"/w/run.sh": {Bytes: 3}}}
		th.spec.Env = map[string]string{"TOKEN": "hush"}
		th.spec.Secret = []string{"TOKEN"}
		return th
	}
	base := make()
	want, ok := identity(base.spec, base.env, base.facts, base.sources)
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
		"resume":                   {true, func(th *thing) { th.spec.Resume = true }},
		"what is shown":            {true, func(th *thing) { th.spec.Output, th.spec.ExitCode = job.OutputAll, job.ExitVerdict }},
		"limits":                   {true, func(th *thing) { th.spec.Timeout, th.spec.Grace = 1, 1 }},
		"stdin":                    {true, func(th *thing) { th.spec.Stdin = job.StdinAll }},
		"order of the environment": {true, func(th *thing) { slices.Reverse(th.env) }},
		"another shell": {true, func(th *thing) {
			th.env = append(th.env, "SHLVL=2", "_=/bin/gangrun", "PWD=/w", "OLDPWD=/", "TERM=dumb", "COLUMNS=80", "SSH_CONNECTION=::1 2 ::1 22",
				"SSH_AUTH_SOCK=/tmp/ssh-1/agent", "TMUX_PANE=%3", "VSCODE_PID=4", "XDG_SESSION_ID=7", "SLURM_JOB_ID=9", "SLURM_STEP_ID=1", "GANGRUN_HOME=/h")
		}},
		"PYTHONPATH":              {false, func(th *thing) { th.env[1] = "PYTHONPATH=/b:/a" }},
		"conda":                   {false, func(th *thing) { th.env = append(th.env, "CONDA_PREFIX=/opt/conda/envs/x") }},
		"modules":                 {false, func(th *thing) { th.env = append(th.env, "LOADEDMODULES=cuda/12.4") }},
		"Slurm's number of tasks": {false, func(th *thing) { th.env = append(th.env, "SLURM_NTASKS=9") }},
		"versions of another host": {false, func(th *thing) {
			th.facts[1].Versions = []job.VersionFact{{Kind: job.VersionPython, Name: "torch", Version: "2.9"}}
		}},
		"Open MPI":                {false, func(th *thing) { th.facts[1].OpenMPI = &job.OpenMPIFact{Version: "5.0.5"} }},
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
			have, ok := identity(th.spec, th.env, th.facts, th.sources)
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
		if key, ok := identity(th.spec, th.env, th.facts, th.sources); ok || key != "" {
			t.Errorf("%s: identity %q", name, key)
		}
	}
}

// TestIdentityOfMPI: the MPI library counts in the identity. The time that ranks may take to find each other
// does not.
func TestIdentityOfMPI(t *testing.T) {
	facts := soundFacts(2)
	key := func(change func(*job.Spec)) string {
		s := testSpec()
		change(&s)
		key, ok := identity(s, nil, facts, prints{})
		if !ok {
			t.Fatal("no identity")
		}
		return key
	}
	base := key(func(*job.Spec) {})
	if key(func(s *job.Spec) { s.MPI = job.MPIMPICH }) == base {
		t.Error("a trial with another MPI is the same")
	}
	if key(func(s *job.Spec) { s.InitTimeout = 1 }) != base {
		t.Error("a trial with another time to find each other is not the same")
	}
}
