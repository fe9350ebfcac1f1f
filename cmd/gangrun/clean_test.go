package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// removedRun has the part of the output of gangrun clean -o json that this test looks at.
type removedRun struct {
	Run       string
	Processes []int
}

// TestCleanProcesses kills all processes of gangrun on a host, so that a process of the job is left. A dry run must
// list this process. gangrun clean or the next run must end the process and name it.
func TestCleanProcesses(t *testing.T) {
	for _, next := range []string{"clean", "run"} {
		t.Run(next, func(t *testing.T) {
			k := together{"running", job.MPINone, allVictims[:4]}
			b := newBench(t)
			r := b.start(nil, append([]string{"--retries", "0", "--preflight", "off", "--loopback", "2", "-n", "4", "--"}, k.program(t)...)...)
			pids := k.find(r)
			hidden := r.hiddenPID("detached.0")
			for _, victim := range k.victims {
				r.strike(pids[victim][0], unix.SIGKILL)
			}
			<-r.exited
			if ended(hidden) {
				t.Fatal("nothing was left: this test shows nothing")
			}
			var all []removedRun
			decode(t, b.ask("clean", "--dry-run", "-o", "json"), &all)
			run := r.list()[0].Run
			i := slices.IndexFunc(all, func(r removedRun) bool { return r.Run == run })
			if i < 0 || !slices.Contains(all[i].Processes, hidden) {
				t.Errorf("a dry run tells %+v, want process %d of run %s", all, hidden, run)
			}
			if ended(hidden) {
				t.Error("a dry run has ended the processes")
			}
			said := ""
			if next == "clean" {
				said = string(b.ask("clean"))
			} else {
				cmd := b.command("run", "--preflight", "off", "-n", "1", "--", "true")
				out, err := cmd.CombinedOutput()
				if said = string(out); err != nil {
					t.Error(err)
				}
			}
			if !strings.Contains(said, "sh") || !strings.Contains(said, run+"/1") {
				t.Errorf("gangrun %s says nothing of the processes that it has ended:\n%s", next, said)
			}
			if !ended(hidden) {
				t.Errorf("gangrun %s has left process %d", next, hidden)
			}
			r.vanish(time.Now()) // the agent of the other host ends its ranks
		})
	}
}

// ended reports whether a process is gone or is a zombie.
func ended(pid int) bool {
	fields := stat(pid)
	return len(fields) == 0 || fields[0] == "Z"
}
