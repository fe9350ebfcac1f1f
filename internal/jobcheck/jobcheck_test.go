package jobcheck_test

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

// valid returns a Spec that sets everything and is valid.
func valid() job.Spec {
	s := job.Default()
	s.Command = []string{"python3", "train.py", ""}
	s.Ranks = 4
	s.Workdir = "/work"
	s.Loopback = 2
	s.Env = map[string]string{"A": "1", "EMPTY": ""}
	s.Inputs = []string{"data", "/abs/data"}
	s.CheckpointDir = "/ckpt"
	s.Resume = true
	s.Trial.Ranks = 2
	s.Trial.Args = []string{"--small"}
	s.Trial.Env = map[string]string{"B": "2"}
	s.Policy = map[job.Category]job.Action{job.Hang: job.RetryNever}
	s.Stdin = job.StdinRank(3)
	return s
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*job.Spec)
		want   string // the text of the only error
	}{
		{"no command", func(s *job.Spec) { s.Command = nil }, "there is no command to run"},
		{"empty program", func(s *job.Spec) { s.Command[0] = "" }, "there is no command to run"},
		{"too few ranks", func(s *job.Spec) { s.Ranks, s.MinRanks, s.Stdin = 0, 3, "0" }, "ranks is 0, but must be 1 to 131072"},
		{"too many ranks", func(s *job.Spec) { s.Ranks = job.MaxRanks + 1 }, "ranks is 131073, but must be 1 to 131072"},
		{"negative loopback", func(s *job.Spec) { s.Loopback = -1 }, "loopback is -1, but must be 0 to 256"},
		{"two lists of hosts", func(s *job.Spec) { s.Loopback, s.Hosts, s.Hostfile = 0, "h1", "/f" }, "hosts come from one list, but several of hosts, hostfile and inventory are given"},
		{"simulated and real hosts", func(s *job.Spec) { s.Loopback, s.Hosts = 1, "h1" }, "loopback simulates hosts on this machine and can be given with an inventory, but not with hosts or a hostfile"},
		{"an impatient host timeout", func(s *job.Spec) { s.HostTimeout = 1 }, "host-timeout 1ns and orphan-grace 20s must be at least 1s"},
		{"too many simulated hosts", func(s *job.Spec) { s.Loopback = 257 }, "loopback is 257, but must be 0 to 256"},
		{"negative retries", func(s *job.Spec) { s.Retries = -1 }, "retries is -1, but must be 0 or more"},
		{"negative trial ranks", func(s *job.Spec) { s.Trial.Ranks = -1 }, "trial.ranks is -1, but must be 0 to ranks (4)"},
		{"more trial ranks than ranks", func(s *job.Spec) { s.Trial.Ranks = 5 }, "trial.ranks is 5, but must be 0 to ranks (4)"},
		{"no trial steps", func(s *job.Spec) { s.Trial.Steps = 0 }, "trial.steps is 0, but must be 1 or more"},
		{"no trial time", func(s *job.Spec) { s.Trial.Time = 0 }, "trial.time is 0s, but must be more than 0"},
		{"negative grace", func(s *job.Spec) { s.Grace = -1 }, "grace -1ns, timeout 0s, init-timeout 1m0s and hang-timeout 10m0s must not be negative"},
		{"negative timeout", func(s *job.Spec) { s.Timeout = -1 }, "grace 5s, timeout -1ns, init-timeout 1m0s and hang-timeout 10m0s must not be negative"},
		{"negative straggler window", func(s *job.Spec) { s.StragglerWindow = -1 }, "straggler-window -1ns must not be negative"},
		{"no workdir", func(s *job.Spec) { s.Workdir = "" }, `workdir "" is not an absolute path`},
		{"relative workdir", func(s *job.Spec) { s.Workdir = "work" }, `workdir "work" is not an absolute path`},
		{"relative checkpoint directory", func(s *job.Spec) { s.CheckpointDir = "ckpt" }, `checkpoint-dir "ckpt" is not an absolute path`},
		{"resume from nowhere", func(s *job.Spec) { s.CheckpointDir = "" }, "resume needs a checkpoint-dir"},
		{"empty input", func(s *job.Spec) { s.Inputs[1] = "" }, `input "" is not a path`},
		{"NUL in an input", func(s *job.Spec) { s.Inputs[1] = "a\x00b" }, `input "a\x00b" is not a path`},
		{"variable without a name", func(s *job.Spec) { s.Env[""] = "x" }, `environment variable "" has a name or value that no process can be given`},
		{"equals sign in a name", func(s *job.Spec) { s.Env["A=B"] = "x" }, `environment variable "A=B" has`},
		{"NUL in a name", func(s *job.Spec) { s.Trial.Env["A\x00"] = "x" }, `environment variable "A\x00" has`},
		{"NUL in a value", func(s *job.Spec) { s.Env["A"] = "x\x00" }, `environment variable "A" has`},
		{"NUL in a trial's value", func(s *job.Spec) { s.Trial.Env["B"] = "\x00" }, `environment variable "B" has`},
		{"NUL in an argument", func(s *job.Spec) { s.Command[2] = "\x00" }, "an argument of the command contains a NUL byte"},
		{"NUL in the trial's command", func(s *job.Spec) { s.Trial.Command = []string{"a", "\x00"} }, "an argument of the command contains a NUL byte"},
		{"NUL in the trial's arguments", func(s *job.Spec) { s.Trial.Args[0] = "\x00" }, "an argument of the command contains a NUL byte"},
		{"stdin for nobody", func(s *job.Spec) { s.Stdin = "4" }, "stdin names rank 4, but the gang has ranks 0 to 3"},
		{"no stdin word", func(s *job.Spec) { s.Stdin = "" }, `stdin "" is neither a rank nor all nor none`},
		{"preflight", func(s *job.Spec) { s.Preflight = "some" }, `preflight "some" is none of full, static, off`},
		{"output", func(s *job.Spec) { s.Output = "" }, `output "" is none of first, all, failed, none`},
		{"tty", func(s *job.Spec) { s.TTY = "yes" }, `tty "yes" is none of auto, on, off`},
		{"exit code", func(s *job.Spec) { s.ExitCode = "0" }, `exit-code "0" is none of rank, verdict`},
		{"env-compat", func(s *job.Spec) { s.EnvCompat = "slurm" }, `env-compat "slurm" is none of none, openmpi, mpich, all`},
		{"env-compat of ranks that MPI starts", func(s *job.Spec) { s.MPI, s.EnvCompat = job.MPIOpenMPI, job.EnvCompatMPICH },
			"env-compat is for ranks that no MPI starts, but mpi is openmpi"},
		{"template in the command", func(s *job.Spec) { s.Command = []string{"a", "{{.Rang}}"} }, `the template "{{.Rang}}" in the command names no field`},
		{"template in the trial's command", func(s *job.Spec) { s.Trial.Command = []string{"a", "{{if .Host}}"} }, `the template "{{if .Host}}" in the command has no {{end}}`},
		{"template in the trial's arguments", func(s *job.Spec) { s.Trial.Args = []string{"{{.X}}"} }, `the template "{{.X}}" in the command names no field`},
		{"template of one program of several", func(s *job.Spec) { s.Apps = []job.App{{Command: []string{"a"}}, {Command: []string{"{{.Y}}"}}} },
			`the template "{{.Y}}" in the command names no field`},
		{"policy for no category", func(s *job.Spec) { s.Policy["hangs"] = job.RetryOnce }, `policy names "hangs", which is no category`},
		{"policy without action", func(s *job.Spec) { s.Policy[job.Hang] = "twice" },
			`policy gives hang the action "twice", which is none of never, once, again, elsewhere`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := valid()
			c.change(&s)
			err := jobcheck.Spec(s)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want the one error %q", err, c.want)
			}
		})
	}
}

func TestValidateAccepts(t *testing.T) {
	for name, change := range map[string]func(*job.Spec){
		"everything used": func(*job.Spec) {},
		"the defaults and a command": func(s *job.Spec) {
			*s = job.Default()
			s.Command, s.Workdir = []string{"true"}, "/"
		},
		"the limits": func(s *job.Spec) {
			s.Ranks, s.Loopback, s.Retries, s.Grace, s.Trial.Ranks = job.MaxRanks, job.MaxLoopback, 0, 0, job.MaxRanks
		},
	} {
		s := valid()
		change(&s)
		if err := jobcheck.Spec(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestValidateJoins checks that all errors are reported at once, and always in the same order.
func TestValidateJoins(t *testing.T) {
	s := job.Spec{Ranks: -1, Resume: true, Env: map[string]string{"B=": "", "A=": ""},
		Policy: map[job.Category]job.Action{"z": "", "a": ""}}
	want := []string{
		"there is no command", "ranks is -1", "host-timeout 0s", "locality", "patience", "trial.steps is 0", "trial.time is 0s", "workdir", "resume needs",
		`environment variable "A="`, `environment variable "B="`, "stdin", "preflight", "output", "tty", "exit-code", "mpi", "env-compat",
		`policy names "a"`, "policy gives a", `policy names "z"`, "policy gives z",
	}
	err := jobcheck.Spec(s)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d errors, want %d:\n%v", len(lines), len(want), err)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("error %d is %q, want it to begin with %q", i+1, line, want[i])
		}
	}
}
