package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// togetherGrace is the orphan grace of the agents. togetherGone is the time after which nothing of a job may be left.
const (
	togetherGrace = 4 * time.Second
	togetherGone  = togetherGrace + 30*time.Second
)

// TestHostsKilledTogether is a part of TestSoakHostsKilledTogether.
func TestHostsKilledTogether(t *testing.T) {
	t.Parallel()
	for _, victims := range [][]string{{"outer watchdog", "watchdog", "agent"}, allVictims[:4]} {
		k := together{"running", job.MPINone, victims}
		t.Run(k.name(), func(t *testing.T) {
			t.Parallel()
			k.injectFar(t)
		})
	}
}

// injectFar kills the victims on one of three hosts that share a directory. When the grace of the agents is over,
// nothing of the job may be left. The next attempt on other hosts must not begin before the ranks on that host have
// ended.
func (k together) injectFar(t *testing.T) (gone time.Duration) {
	bed := testhosts.Up(t, 3)
	order := filepath.Join(bed.Shared(), "order")
	hang, well := "exec sleep 1000", "exit 0"
	if k.flavour != job.MPINone {
		hang, well = `exec "$0" hang-barrier 0`, `exec "$0" hello`
	}
	script := "export RANK=${RANK:-$OMPI_COMM_WORLD_RANK}\ntest $GANGRUN_ATTEMPT = 2 && { echo 2 >> order; " + well + "; }\n" + detached + hang
	command := []string{"sh", "-c", script}
	if k.flavour != job.MPINone {
		path := filepath.Join(bed.Shared(), "fail")
		data, err := os.ReadFile(failProgram(t, k.flavour))
		if err != nil {
			t.Fatal(err)
		}
		writeProgram(t, path, data)
		command = append(command, path)
	}
	// Another user runs the agents. The agents of other tests on this machine could otherwise remove what is left
	// before the agent of the next run does.
	ctl := bed.Controller()
	config, err := os.ReadFile(ctl.SSHConfig())
	if err == nil {
		config = append([]byte("Host h1 h2 h3\n\tUser alice\n\tIdentityFile "+ctl.Key("id_alice")+"\n\tIdentitiesOnly yes\n"), config...)
		err = os.WriteFile(ctl.SSHConfig(), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := startFarCommand(t, bed, "h1:1,h2:1,h3:1", 2, k.flavour, command, "--retries", "1", "--orphan-grace", togetherGrace.String(), "--host-timeout", "3s", "--grace", "1s", "--workdir", bed.Shared())
	if !r.await("both ranks", func() bool {
		for rank := range 2 {
			if _, err := os.Stat(filepath.Join(bed.Shared(), "ready."+strconv.Itoa(rank))); err != nil {
				return false
			}
		}
		return true
	}) {
		t.Fatal("gangrun has ended")
	}
	pids := k.findFar(r, bed.Host(1))
	killed := time.Now()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended together with its parents
	}
	if !k.has("controller") && !k.fatal() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
	}
	r.finish()
	if k.has("outer watchdog") && k.has("watchdog") && k.has("agent") { // the next agent on the host cleans up
		left, err := bed.Host(1).Processes("GANGRUN_RUN=")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		next := bed.Controller().Command(ctx, r.gangrun, "run", "--preflight", "off", "--hosts", "h1", "--mpi", "none", "--", "true")
		next.Dir = bed.Shared()
		if out, err := next.CombinedOutput(); err != nil || len(left) > 0 && !strings.Contains(string(out), "killed what was left") {
			t.Errorf("%v, and of what was left it says: %s", err, out)
		}
	}
	r.nothingLeft()
	if gone = time.Since(killed); gone > togetherGone && k.has("controller") {
		t.Errorf("something was left for %s", gone)
	}
	data, _ := os.ReadFile(order)
	last := 0
	for i, line := range strings.Fields(string(data)) {
		n, err := strconv.Atoi(line)
		if err != nil || n < last {
			t.Fatalf("line %d of order is %q after %d: two attempts were there at once", i+1, line, last)
		}
		last = n
	}
	if !k.has("controller") && k.fatal() && last != 2 {
		t.Error("there was no second attempt")
	}
	return gone
}

// findFar returns the PIDs of the victims, in the order in which they are killed.
func (k together) findFar(r *farRun, h *testhosts.Host) (pids []int) {
	all, err := h.Processes("")
	if err != nil {
		r.t.Fatal(err)
	}
	find := func(ok func(testhosts.Process) bool) (found []int) {
		for _, p := range all {
			if ok(p) {
				found = append(found, p.PID)
			}
		}
		return found
	}
	agent := func(last string) func(testhosts.Process) bool {
		return func(p testhosts.Process) bool {
			return len(p.Args) > 2 && p.Args[1] == "agent" && p.Args[len(p.Args)-1] == last
		}
	}
	victims := map[string][]int{
		"controller": {r.cmd.Process.Pid}, "outer watchdog": find(agent("h1")), "watchdog": find(agent("watchdog")), "agent": find(agent("worker")),
		"runtime": find(func(p testhosts.Process) bool {
			return p.Name == "mpirun" || p.Name == "orted" || len(p.Args) > 1 && p.Args[1] == "shim"
		}),
		"leader": find(func(p testhosts.Process) bool {
			return slices.Equal(p.Args, []string{"sleep", "1000"}) || len(p.Args) > 1 && p.Args[1] == "hang-barrier"
		}),
	}
	for _, victim := range k.victims {
		if victim != "runtime" && len(victims[victim]) != 1 {
			r.t.Fatalf("there are %v of %s among %v", victims[victim], victim, fmt.Sprint(all))
		}
		pids = append(pids, victims[victim]...)
	}
	return pids
}
