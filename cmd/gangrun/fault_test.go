package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// hide is shell code that leaves a process behind which is hard to find. Its parent is dead, it has a session of its
// own and no streams, and it ignores SIGTERM.
const hide = `(setsid sh -c 'trap "" TERM HUP INT; echo $$ > hidden.'$RANK'; exec <&- >&- 2>&-; while :; do sleep 0.1; done' &)
while [ ! -s hidden.$RANK ]; do sleep 0.01; done
`

// The programs of ranks. A rank is ready when its hidden process exists.
const (
	sleeper  = hide + `: > ready.$RANK; exec sleep 1000`
	stubborn = `trap ': > told.$RANK' TERM; ` + hide + `: > ready.$RANK; while [ ! -e end ]; do sleep 0.05; done`
)

// direct returns a command in which program is the process of the rank itself. below makes it the child of a shell.
// guarded makes it the child of a shell that SIGTERM does not end.
func direct(program string) []string { return []string{"sh", "-c", program} }
func below(program string) []string {
	return []string{"sh", "-c", `sh -c "$0"; exit $?`, program}
}
func guarded(program string) []string {
	return []string{"sh", "-c", `trap : TERM; sh -c "$0"; exit $?`, program}
}

// fault says in which phase of a run which process is killed. The gang has four ranks on two simulated hosts.
type fault struct{ phase, victim string }

// TestFaults kills one process of every kind that belongs to a run, in every phase of the run. Soon after, no process
// of the job may be left, gangrun must have ended, and its report must be true.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"preflight", "launch", "running", "stopping"} {
		for _, victim := range []string{"controller", "agent", "watchdog", "rank", "parent"} {
			t.Run(phase+"/"+victim, func(t *testing.T) {
				t.Parallel()
				fault{phase, victim}.inject(t)
			})
		}
	}
}

// inject runs a gang, kills the victim and checks the consequences. The ranks do not end by themselves before that,
// and no time limit ends them.
func (f fault) inject(t *testing.T) {
	b := newBench(t)
	args := []string{"--retries", "0", "--loopback", "2", "-n", "4", "--grace", "10m"}
	program, command := sleeper, direct
	if f.victim == "parent" {
		command = below
	}
	switch f.phase {
	case "preflight":
		if err := os.WriteFile(filepath.Join(b.dir, "job.yaml"), []byte("trial: {time: 10m}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "job.yaml")
		// No other process would see a file that the trial makes, so the rank prints "ready". If the trial was killed,
		// the gang starts all the same; its ranks then exit at once.
		program = "test $GANGRUN_ATTEMPT = 1 && exit 3\n" + strings.Replace(sleeper, ": > ready.$RANK", "echo ready", 1)
	case "stopping":
		if program = stubborn; f.victim == "parent" {
			command = guarded
		}
		fallthrough
	default:
		args = append(args, "--preflight", "off")
	}
	r := b.start(nil, append(append(args, "--"), command(program)...)...)
	victim := f.await(r)
	killed := time.Now()
	if !r.strike(victim, unix.SIGKILL) {
		t.Fatalf("the victim, process %d, is gone", victim)
	}
	if f.phase == "stopping" && (f.victim == "rank" || f.victim == "parent") {
		r.create("end").Close() // lets the other ranks end, which have a long grace
	}
	gone := r.vanish(killed)
	t.Logf("the job was gone after %s, gangrun after %s: %s", gone.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond), r.cmd.ProcessState)
	f.check(r)
}

// await waits for the phase and returns the PID of the victim.
func (f fault) await(r *controlled) int {
	r.t.Helper()
	var found tree
	leaders := func(n int) func() bool {
		return func() bool {
			found = r.tree()
			return len(found.leaders) >= n && len(found.agents) == 2
		}
	}
	switch f.phase {
	case "launch":
		r.await("a rank", leaders(1))
	case "preflight":
		found.leaders = []int{r.started(0, 0)}
		r.await("what the trial's rank says", func() bool { return r.trialLog() == "ready\n" })
		if list := r.list(); len(list) != 1 || list[0].State != job.StatePreflight {
			r.t.Errorf("gangrun ps tells %+v during the preflight", list)
		}
	default:
		r.files("ready", 4)
		r.await("all four ranks", leaders(4))
		r.journalled("a running gang", func(e job.Event) bool { return e.Kind == job.KindState && e.State == job.StateRunning })
		var told []int
		for _, rank := range r.status().Now {
			told = append(told, rank.PID)
		}
		slices.Sort(found.leaders)
		if slices.Sort(told); !slices.Equal(told, found.leaders) {
			r.t.Errorf("gangrun status tells PIDs %v, the ranks are %v", told, found.leaders)
		}
		if list := r.list(); len(list) != 1 || list[0].State != job.StateRunning {
			r.t.Errorf("gangrun ps tells %+v of a running gang", list)
		}
	}
	if f.phase == "stopping" {
		if !r.strike(r.cmd.Process.Pid, unix.SIGTERM) {
			r.t.Fatal("gangrun is gone")
		}
		r.files("told", 4)
	}
	rank := found.leaders[0]
	agent := parent(rank)
	if f.phase == "preflight" { // the parent of a contained rank is not the agent, but a child of it
		agent = parent(agent)
	}
	switch f.victim {
	case "controller":
		return r.cmd.Process.Pid
	case "agent":
		return agent
	case "watchdog":
		return parent(agent)
	default:
		return rank
	}
}

// trialLog returns what the first rank of the trial of the only run has printed so far.
func (b *bench) trialLog() string {
	paths, err := filepath.Glob(filepath.Join(b.dir, "home/runs/*/attempts/trial", job.LogName(0, "out")))
	if err != nil || len(paths) != 1 {
		return ""
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// check checks what gangrun reports, and what it has left, after everything has ended.
func (f fault) check(r *controlled) {
	t := r.t
	list := r.list()
	if len(list) != 1 {
		t.Fatalf("gangrun ps lists %d runs, want 1", len(list))
	}
	run, status, code := list[0], r.status(), r.cmd.ProcessState.ExitCode()
	want := map[string]job.State{
		"preflight": job.StateFailed, "launch": job.StateFailed, "running": job.StateFailed, "stopping": job.StateCancelled,
	}[f.phase]
	left := r.leftovers()
	if f.victim == "controller" {
		want = job.StateLost
		if run.ExitCode != nil || status.ExitCode != nil {
			t.Errorf("a lost run has exit codes %v, %v", run.ExitCode, status.ExitCode)
		}
		for _, rank := range status.Now {
			if rank.State != "lost" && rank.State != "placed" {
				t.Errorf("rank %d of a lost run is told as %s", rank.Rank, rank.State)
			}
		}
		if hosts, err := filepath.Glob(filepath.Join(r.dir, "tmp/*/*/*")); err != nil || len(hosts) > 0 {
			t.Errorf("the agents have left their hosts' temporary directories %q, %v", hosts, err)
		}
		r.ask("clean", run.Run)
		if left, again := r.leftovers(), r.list(); len(left) > 0 || len(again) > 0 {
			t.Errorf("gangrun clean has left %q, and runs %+v", left, again)
		}
	} else {
		if len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		if run.ExitCode == nil || *run.ExitCode != code || code == 0 {
			t.Errorf("gangrun exited with %d, gangrun ps tells %v", code, run.ExitCode)
		}
		if (code == 128+int(unix.SIGTERM)) != (f.phase == "stopping") {
			t.Errorf("exit code %d %s", code, f.phase)
		}
		if (f.victim == "rank" || f.victim == "parent") && (f.phase == "launch" || f.phase == "running") && code != 128+int(unix.SIGKILL) {
			t.Errorf("exit code %d, want that of the rank that was killed", code)
		}
		if _, err := os.Stat(filepath.Join(run.Dir, "report.json")); err != nil {
			t.Error(err)
		}
	}
	if run.State != want || status.State != want {
		t.Errorf("gangrun ps tells %q and gangrun status %q, want %q", run.State, status.State, want)
	}
	if strings.Contains(r.file("stderr"), "panic:") || strings.Contains(r.file("stderr"), "fatal error:") {
		t.Error("gangrun panicked")
	}
}

// hidden returns a function that reports whether the hidden process of a rank is gone.
func (r *controlled) hidden(rank int) (gone func() bool) {
	r.t.Helper()
	pid := r.hiddenPID("hidden." + strconv.Itoa(rank))
	since := begun(pid)
	if since == "" {
		r.t.Fatalf("what rank %d has hidden is gone already", rank)
	}
	return func() bool { return begun(pid) != since }
}

// hiddenPID returns the PID that a file of the bench has.
func (r *controlled) hiddenPID(file string) int {
	r.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(r.file(file)))
	if err != nil {
		r.t.Fatal(err)
	}
	return pid
}

// TestStrays kills a rank while another rank has a long grace. The hidden process of the killed rank must end long
// before the grace is over.
func TestStrays(t *testing.T) {
	t.Parallel()
	r := newBench(t).start(nil, "--retries", "0", "--preflight", "off", "--grace", "10m", "-n", "2", "--", "sh", "-c",
		`trap ': > told.$RANK' TERM; `+hide+`: > ready.$RANK; while [ ! -e end ]; do sleep 0.02; done`)
	r.files("ready", 2)
	gone := r.hidden(0)
	victim := 0
	r.await("the PID of rank 0 in the journal", func() bool {
		if ranks := r.status().Now; len(ranks) > 0 {
			victim = ranks[0].PID
		}
		return victim > 0
	})
	killed := time.Now()
	if !r.strike(victim, unix.SIGKILL) {
		t.Fatal("rank 0 is gone")
	}
	r.await("the end of what rank 0 has hidden", gone)
	if took := time.Since(killed); took > goneLimit {
		t.Errorf("what rank 0 had hidden was gone after %s", took)
	}
	r.await("rank 1 in its grace", func() bool {
		_, err := os.Stat(filepath.Join(r.dir, "told.1"))
		return err == nil && len(r.tree().leaders) == 1
	})
	r.create("end").Close()
	if code := r.finish(); code != 128+int(unix.SIGKILL) {
		t.Errorf("exit code %d, want that of rank 0", code)
	}
	r.vanish(time.Now())
}

// TestLateRanks cancels ranks that need most of their grace to end, or a long time. Their hidden processes must end
// before them or together with them.
func TestLateRanks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ grace, late string }{
		"soon":  {"2s", "sleep 1.8"},
		"later": {"10m", "while [ ! -e end ]; do sleep 0.02; done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBench(t).start(nil, "--retries", "0", "--preflight", "off", "--grace", c.grace, "-n", "2", "--", "sh", "-c",
				`trap ': > told.$RANK; `+c.late+`; exit 0' TERM; `+hide+`: > ready.$RANK; while :; do sleep 0.02; done`)
			r.files("ready", 2)
			gone0, gone1 := r.hidden(0), r.hidden(1)
			told := time.Now()
			if !r.strike(r.cmd.Process.Pid, unix.SIGTERM) {
				t.Fatal("gangrun is gone")
			}
			if name == "later" {
				r.files("told", 2)
				for _, gone := range []func() bool{gone0, gone1} {
					r.await("the end of what a rank in its grace has hidden", gone)
				}
				if took := time.Since(told); took > goneLimit {
					t.Errorf("what ranks in their grace had hidden was gone after %s", took)
				}
				r.await("both ranks in their grace", func() bool { return len(r.tree().leaders) == 2 })
				r.create("end").Close()
				told = time.Now()
			}
			t.Logf("the job was gone after %s", r.vanish(told).Round(time.Millisecond))
			if code := r.finish(); code != 128+int(unix.SIGTERM) {
				t.Errorf("exit code %d of a run that was cancelled", code)
			}
		})
	}
}

// TestControllerStopped stops the controller for a while, as Ctrl-Z does. The gang must go on meanwhile, and the run
// must succeed after that.
func TestControllerStopped(t *testing.T) {
	t.Parallel()
	const ranks = 4
	r := newBench(t).start(nil, "--retries", "0", "--preflight", "off", "--loopback", "2", "-n", "4", "--",
		"sh", "-c", `: > ready.$RANK; while [ ! -e go ]; do sleep 0.02; done; : > went.$RANK; while [ ! -e end ]; do sleep 0.02; done; echo done`)
	r.files("ready", ranks)
	if !r.strike(r.cmd.Process.Pid, unix.SIGSTOP) {
		t.Fatal("the controller is gone")
	}
	stopped := time.Now()
	r.create("go").Close()
	r.files("went", ranks)
	r.await("two seconds", func() bool { return time.Since(stopped) >= 2*time.Second })
	r.await("all ranks while the controller is stopped", func() bool { return len(r.tree().leaders) == ranks })
	if !r.strike(r.cmd.Process.Pid, unix.SIGCONT) {
		t.Fatal("the controller is gone")
	}
	r.create("end").Close()
	if code := r.finish(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if s := r.status(); s.State != job.StateSucceeded || len(s.Attempts) != 1 {
		t.Errorf("state %s after %d attempts, want success at once", s.State, len(s.Attempts))
	}
	r.vanish(time.Now())
	if left := r.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
