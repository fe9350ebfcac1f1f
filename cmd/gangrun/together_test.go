package main_test

import (
	"fmt"
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

// detached is shell code that leaves five processes behind. Each writes the number of its attempt to the file order
// again and again. In the order of the code they are: a child; a child that ignores SIGTERM; an orphan with closed
// streams; an orphan with closed streams in a session of its own, which ignores signals; and an orphan that has an empty
// environment in addition.
const detached = `
loop='while :; do echo $GANGRUN_ATTEMPT >> order; sleep 0.05; done'
sh -c "$loop" &
sh -c "trap '' TERM; $loop" &
(sh -c "exec <&- >&- 2>&-; $loop" &)
(setsid sh -c "trap '' TERM HUP INT; echo \$\$ > detached.$RANK; exec <&- >&- 2>&-; $loop" &)
(setsid env -i PATH="$PATH" sh -c "trap '' TERM HUP INT; exec <&- >&- 2>&-; GANGRUN_ATTEMPT=$GANGRUN_ATTEMPT; $loop" &)
while [ ! -s detached.$RANK ]; do sleep 0.01; done
echo ready; : > ready.$RANK
`

// together says which processes of the first host of a run are killed at the same time: the controller, the watchdogs,
// the agent, the first process of a rank, and the processes of Open MPI above that one.
type together struct {
	phase   string
	flavour job.MPI
	victims []string
}

// allVictims has all kinds of victims, in the order in which they are killed.
var allVictims = []string{"controller", "outer watchdog", "watchdog", "agent", "runtime", "leader"}

func (k together) name() string {
	return fmt.Sprintf("%s/%s/%s", k.phase, k.flavour, strings.ReplaceAll(strings.Join(k.victims, "+"), " ", "-"))
}

func (k together) has(victim string) bool { return slices.Contains(k.victims, victim) }

// blind reports whether no process remains on the host that could end what is left.
func (k together) blind() bool {
	return k.has("outer watchdog") && k.has("watchdog") && k.has("agent") && k.has("controller")
}

// TestKilledTogether is a part of TestSoakKilledTogether.
func TestKilledTogether(t *testing.T) {
	t.Parallel()
	for _, victims := range [][]string{{"watchdog", "agent"}, {"controller", "watchdog", "agent"}, {"outer watchdog", "watchdog", "agent"}, {"controller", "outer watchdog", "watchdog", "agent"}} {
		for phase, flavour := range map[string]job.MPI{"preflight": job.MPINone, "launch": job.MPIMPICH, "running": job.MPIOpenMPI, "stopping": job.MPINone} {
			k := together{phase, flavour, victims}
			t.Run(k.name(), func(t *testing.T) {
				t.Parallel()
				k.inject(t)
			})
		}
	}
}

// program returns the command of the ranks. It hangs in the first attempt and succeeds in the next one.
func (k together) program(t *testing.T) []string {
	hang, well := "exec sleep 1000", "exit 0"
	if k.flavour != job.MPINone {
		hang, well = `exec "$0" hang-barrier 0`, `exec "$0" hello`
	}
	guard := `test $GANGRUN_ATTEMPT = 2 && { echo 2 >> order; ` + well + "; }\n"
	if k.phase == "preflight" { // the test does not look at the gang that may follow
		guard = "test $GANGRUN_ATTEMPT = 0 && test ! -e killed || { " + well + "; }\n"
	}
	script := "export RANK=${RANK:-$OMPI_COMM_WORLD_RANK}\n" + guard + detached + hang
	if k.phase == "stopping" {
		script = "trap '' TERM\n" + script
	}
	command := []string{"sh", "-c", script}
	if k.flavour != job.MPINone {
		command = append(command, failProgram(t, k.flavour))
	}
	return command
}

// inject kills the victims. It returns how long after that the last process of the job was seen.
func (k together) inject(t *testing.T) (gone time.Duration) {
	b := newBench(t)
	args := []string{"--retries", "1", "--loopback", "2", "-n", "4", "--grace", "1s", "--mpi", string(k.flavour)}
	if k.phase != "preflight" {
		args = append(args, "--preflight", "off")
	}
	r := b.start(nil, append(append(args, "--"), k.program(t)...)...)
	pids := k.find(r)
	if k.phase == "stopping" && !r.strike(r.cmd.Process.Pid, unix.SIGTERM) {
		t.Fatal("gangrun is gone")
	}
	since := time.Now()
	for _, victim := range k.victims {
		for _, pid := range pids[victim] {
			_ = r.strike(pid, unix.SIGKILL) // the process may have ended together with its parents
		}
	}
	r.create("killed").Close()
	if !k.has("controller") && !k.fatal() { // otherwise, the run would not end
		r.strike(r.cmd.Process.Pid, unix.SIGTERM)
	}
	if k.blind() { // the next gangrun on the host ends what is left
		<-r.exited
		r.ask("clean")
	}
	gone = r.vanish(since)
	k.check(r)
	return gone
}

// find waits for the phase and returns the PIDs of the possible victims.
func (k together) find(r *controlled) map[string][]int {
	attempt := 1
	if k.phase == "preflight" {
		attempt = 0
	}
	leader := r.started(attempt, 0)
	switch k.phase {
	case "preflight":
		r.await("what the trial's rank says", func() bool { return r.trialLog() == "ready\n" })
	case "running", "stopping":
		r.files("ready", 4)
	}
	var found tree
	r.await("the agents", func() bool { found = r.tree(); return len(found.agents) == 2 })
	agent := found.agents[0]
	for _, pid := range found.agents {
		if isBelow(pid, leader) {
			agent = pid
		}
	}
	var runtime []int
	for pid := parent(leader); pid > 1 && pid != agent; pid = parent(pid) {
		runtime = append(runtime, pid)
	}
	return map[string][]int{
		"controller": {r.cmd.Process.Pid}, "outer watchdog": {parent(parent(agent))}, "watchdog": {parent(agent)}, "agent": {agent},
		"runtime": runtime, "leader": {leader},
	}
}

// isBelow reports whether pid is top or descends from top.
func isBelow(top, pid int) bool {
	for ; pid > 1; pid = parent(pid) {
		if pid == top {
			return true
		}
	}
	return false
}

// check checks what gangrun reports, and the order in which attempts have written to the file order.
func (k together) check(r *controlled) {
	t := r.t
	run, code := r.list()[0], r.cmd.ProcessState.ExitCode()
	switch {
	case k.has("controller"):
		if code != -1 || run.State != job.StateLost && k.phase != "preflight" && k.phase != "launch" {
			t.Errorf("exit code %d, state %s of a run whose controller was killed", code, run.State)
		}
	case run.ExitCode == nil || *run.ExitCode != code || (run.State == job.StateSucceeded) != (code == 0):
		t.Errorf("gangrun exited with %d, gangrun ps tells %+v", code, run)
	case k.phase == "stopping" && code != 128+int(unix.SIGTERM):
		t.Errorf("exit code %d of a run that was cancelled", code)
	}
	r.deserted()
	last := 0
	for i, line := range strings.Fields(r.file("order")) {
		n, err := strconv.Atoi(line)
		if err != nil || n < last {
			t.Fatalf("line %d of order is %q after %d: two attempts were there at once", i+1, line, last)
		}
		last = n
	}
	if k.phase == "running" && !k.has("controller") && len(k.victims) > 0 && last != 2 && k.fatal() {
		t.Errorf("there was no second attempt; exit code %d", code)
	}
	if said := r.file("stderr"); strings.Contains(said, "panic:") || strings.Contains(said, "fatal error:") {
		t.Error("gangrun panicked")
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "tmp", "gangrun-layer*")); err != nil || len(left) > 0 && !k.blind() {
		t.Errorf("left in the directory for temporary files: %q, %v", left, err)
	}
	_ = os.Remove(filepath.Join(r.dir, "order"))
}

// deserted waits until no process has the directory of the bench as its working directory. It also finds processes
// with an empty environment.
func (r *controlled) deserted() {
	r.t.Helper()
	dir, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for deadline := time.Now().Add(goneLimit); ; time.Sleep(20 * time.Millisecond) {
		var left []string
		links, _ := filepath.Glob("/proc/[0-9]*/cwd")
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && to == dir {
				left = append(left, filepath.Dir(link))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Errorf("at work in the job's directory for %s: %q", goneLimit, left)
			return
		}
	}
}

// fatal reports whether the gang cannot go on without the victims.
func (k together) fatal() bool {
	return slices.ContainsFunc(k.victims, func(v string) bool {
		return v != "outer watchdog" && v != "controller" && (v != "runtime" || k.flavour == job.MPIOpenMPI)
	})
}
