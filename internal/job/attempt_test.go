package job_test

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestExit(t *testing.T) {
	at := job.Exit{Rank: 2, Host: "h1"}
	exited := func(code int) job.Exit { e := at; e.Status, e.Code = job.Exited, code; return e }
	signalled := func(signal int) job.Exit { e := at; e.Status, e.Signal = job.Signalled, signal; return e }
	with := func(e job.Exit, change func(*job.Exit)) job.Exit { change(&e); return e }
	for _, c := range []struct {
		name  string
		exit  job.Exit
		text  string
		shell int
		good  bool
	}{
		{"well", exited(0), "rank 2 on h1 exited with code 0", 0, true},
		{"well, while being stopped", with(exited(0), func(e *job.Exit) { e.Stopped = true }), "rank 2 on h1 exited with code 0", 0, true},
		{"with a code", exited(3), "rank 2 on h1 exited with code 3", 3, false},
		{"aborted", with(exited(13), func(e *job.Exit) { e.Aborted = true }), "rank 2 on h1 called MPI_Abort and exited with code 13", 13, false},
		{"aborted with 256", with(exited(0), func(e *job.Exit) { e.Aborted = true }), "rank 2 on h1 called MPI_Abort and exited with code 0", 0, false},
		{"at fault", with(exited(0), func(e *job.Exit) { e.Fault = "it never called MPI_Finalize" }),
			"rank 2 on h1 exited with code 0, but it never called MPI_Finalize", 0, false},
		{"killed", signalled(9), "rank 2 on h1 was ended by signal 9 (SIGKILL)", 137, false},
		{"crashed", with(signalled(11), func(e *job.Exit) { e.Core = true }), "rank 2 on h1 was ended by signal 11 (SIGSEGV)", 139, false},
		{"real-time signal", signalled(34), "rank 2 on h1 was ended by signal 34 (signal 34)", 162, false},
		{"missing program", with(at, func(e *job.Exit) { e.Status, e.Code, e.Text = job.Unstarted, 127, "no such file" }),
			"rank 2 on h1 could not be started: no such file", 127, false},
		{"unstarted", with(at, func(e *job.Exit) { e.Status, e.Text = job.Unstarted, "another rank could not be started" }),
			"rank 2 on h1 could not be started: another rank could not be started", 0, false},
		{"lost", with(at, func(e *job.Exit) { e.Status, e.Text = job.Lost, "the agent on its host is gone" }),
			"rank 2 on h1 was lost: the agent on its host is gone", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.exit.String(); got != c.text {
				t.Errorf("says %q, want %q", got, c.text)
			}
			if got := c.exit.ShellCode(); got != c.shell {
				t.Errorf("a shell would show %d, want %d", got, c.shell)
			}
			if got := c.exit.Good(); got != c.good {
				t.Errorf("good is %t, want %t", got, c.good)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	good := func(rank int) job.Exit { return job.Exit{Rank: rank, Status: job.Exited} }
	bad := func(rank int) job.Exit { return job.Exit{Rank: rank, Status: job.Exited, Code: 1} }
	stopped := func(rank int) job.Exit {
		return job.Exit{Rank: rank, Status: job.Signalled, Signal: 15, Stopped: true}
	}
	for _, c := range []struct {
		name    string
		outcome job.Outcome
		good    bool // whether a gang of 2 ranks has ended well
		first   int  // the rank that First returns; -1 if First returns none
	}{
		{"nothing seen", job.Outcome{}, false, -1},
		{"all well", job.Outcome{Exits: []job.Exit{good(1), good(0)}}, true, -1},
		{"one is missing", job.Outcome{Exits: []job.Exit{good(1)}}, false, -1},
		{"one may still run", job.Outcome{Exits: []job.Exit{good(1), good(0)}, Unreaped: []job.Unreaped{{Rank: 0, Host: "h1"}}}, false, -1},
		{"one failed", job.Outcome{Exits: []job.Exit{good(1), bad(0)}}, false, 0},
		{"first of two failures", job.Outcome{Exits: []job.Exit{bad(1), bad(0)}}, false, 1},
		{"behind one that was stopped", job.Outcome{Exits: []job.Exit{stopped(0), bad(1)}}, false, 1},
		{"all were stopped", job.Outcome{Exits: []job.Exit{stopped(0), stopped(1)}}, false, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.outcome.Good(2); got != c.good {
				t.Errorf("good is %t, want %t", got, c.good)
			}
			first, ok := c.outcome.First()
			if ok != (c.first >= 0) || ok && first.Rank != c.first {
				t.Errorf("first is %+v, %t; want rank %d", first, ok, c.first)
			}
			if !ok && first != (job.Exit{}) {
				t.Errorf("no first failure, but %+v", first)
			}
		})
	}
}

func TestAttempt(t *testing.T) {
	if !(job.Attempt{}).Trial() || (job.Attempt{Number: 1}).Trial() {
		t.Error("the trial is the attempt with number 0, and no other")
	}
	for want, got := range map[string]string{
		"rank-0000.out":   job.LogName(0, "out"),
		"rank-0017.err":   job.LogName(17, "err"),
		"rank-131071.out": job.LogName(131071, "out"),
	} {
		if got != want {
			t.Errorf("the log is named %q, want %q", got, want)
		}
	}
}

func TestSignalName(t *testing.T) {
	for signal, want := range map[int]string{
		1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1",
		11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT",
		24: "SIGXCPU", 25: "SIGXFSZ", 30: "SIGPWR", 31: "SIGSYS",
		0: "signal 0", -3: "signal -3", 32: "signal 32", 64: "signal 64",
	} {
		if got := job.SignalName(signal); got != want {
			t.Errorf("signal %d is %q, want %q", signal, got, want)
		}
	}
}

func TestPlacementOn(t *testing.T) {
	p := job.Placement{Ranks: []job.Rank{{Rank: 0, Host: "h1"}, {Rank: 1, Host: "h2"}, {Rank: 2, Host: "h1"}}}
	on := p.On("h1")
	if len(on) != 2 || on[0].Rank != 0 || on[1].Rank != 2 {
		t.Errorf("on h1 are %+v, want ranks 0 and 2", on)
	}
	if on := p.On("h3"); len(on) != 0 {
		t.Errorf("on h3 are %+v, want none", on)
	}
	if !(job.Excluded{}).Empty() || (job.Excluded{Hosts: []string{"h1"}}).Empty() || (job.Excluded{Devices: []string{"GPU-1"}}).Empty() {
		t.Error("Excluded is empty when it names neither host nor GPU, and only then")
	}
}

func TestExcludedDevice(t *testing.T) {
	e := job.Excluded{Hosts: []string{"gone"}, Devices: []string{"GPU-1", "MIG-GPU-2/1/0", "h1/GPU0", "h1/MIG-/1/0"}}
	for _, c := range []struct {
		host, uuid, gpu string
		want            bool
	}{
		{"h1", "GPU-1", "", true}, {"h2", "GPU-1", "", true}, {"h1", "MIG-GPU-2/1/0", "GPU-2", true}, {"h1", "GPU-2", "", false},
		{"h1", "GPU0", "", true}, {"h2", "GPU0", "", false}, {"h1", "GPU1", "", false}, {"h11", "GPU0", "", false},
		{"h1", "MIG-3", "GPU0", true}, {"h2", "MIG-3", "GPU0", false}, {"h2", "MIG-4", "GPU-1", true}, {"h2", "MIG-4", "GPU-3", false},
		{"h1", "MIG-/1/0", "", true}, {"h2", "MIG-/1/0", "", false},
		{"gone", "GPU0", "", true}, {"gone", "GPU-7", "", true},
	} {
		if got := e.Device(c.host, job.Device{UUID: c.uuid, GPU: c.gpu}); got != c.want {
			t.Errorf("%s of %s is excluded: %t, want %t", c.uuid, c.host, got, c.want)
		}
	}
	if bare := (job.Excluded{Devices: []string{"GPU0"}}); bare.Device("h1", job.Device{UUID: "GPU0"}) {
		t.Error("a name that many hosts have excludes a GPU of one")
	}
}
