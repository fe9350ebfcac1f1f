//go:build soak

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
	"github.com/gangrun/gangrun/internal/testseed"
)

// slurmFault is a fault that happens to a job. If mayEnd is true, the job may fail because of it.
type slurmFault struct {
	name   string
	mayEnd bool
	do     func(b *slurmBed, random *rand.Rand, id string) error
}

// killed returns a fault that kills a random process on the nodes for which is returns true.
func killed(is func(testhosts.Process) bool) func(*slurmBed, *rand.Rand, string) error {
	return func(b *slurmBed, random *rand.Rand, _ string) error {
		var found []testhosts.Process
		for _, h := range b.bed.Hosts() {
			all, err := h.Processes("")
			if err != nil {
				return err
			}
			found = append(found, slices.DeleteFunc(all, func(p testhosts.Process) bool { return !is(p) })...)
		}
		if len(found) == 0 {
			return nil // the process has ended already
		}
		return unix.Kill(found[random.IntN(len(found))].PID, unix.SIGKILL)
	}
}

// command returns a function that reports whether a process runs a certain command of gangrun.
func command(name string) func(testhosts.Process) bool {
	return func(p testhosts.Process) bool {
		return len(p.Args) > 1 && filepath.Base(p.Args[0]) == "gangrun" && p.Args[1] == name
	}
}

var slurmFaults = []slurmFault{
	{"node off", false, func(b *slurmBed, random *rand.Rand, id string) error {
		hosts := b.bed.Hosts()
		return hosts[random.IntN(len(hosts))].Kill()
	}},
	{"scancel", true, func(b *slurmBed, _ *rand.Rand, id string) error {
		_, err := b.Exec(b.t.Context(), "bob", "scancel", id)
		return err
	}},
	{"requeue", false, func(b *slurmBed, _ *rand.Rand, id string) error {
		_, err := b.Exec(b.t.Context(), "bob", "scontrol", "requeue", id)
		return err
	}},
	{"controller killed", true, killed(command("run"))},
	{"agent killed", false, killed(command("agent"))},
	{"step killed", false, killed(command("step"))},
	// This fault spares the slurmstepd of the batch script. Without it, Slurm 22.05 never notices the end of the
	// script, and shows the job as running until its time limit.
	{"slurmstepd killed", true, killed(func(p testhosts.Process) bool {
		return strings.HasPrefix(p.Name, "slurmstepd") && !strings.Contains(strings.Join(p.Args, " "), ".batch]")
	})},
	{"slurmctld restarted", false, func(b *slurmBed, random *rand.Rand, _ string) error {
		if err := b.StopController(); err != nil {
			return err
		}
		return b.StartController()
	}},
}

// TestSoakSlurmFaults starts COUNT jobs in a real Slurm and makes one fault happen to each. Each job must end with the
// right result. If the fault may end the job, the job may fail. No job may leave anything on a node. A run with the
// same SEED makes the same choices.
func TestSoakSlurmFaults(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 50)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	ended := map[string]int{}
	var b *slurmBed
	for n := range count {
		random := rand.New(rand.NewPCG(seed, n))
		f := slurmFaults[random.IntN(len(slurmFaults))]
		t.Run(fmt.Sprintf("%d %s", n, f.name), func(t *testing.T) {
			b = newSlurmBed(t, 4)
			dir := fmt.Sprintf("fault%d", n)
			line := "exec "
			if random.IntN(2) == 0 {
				line = "" // then a shell runs between Slurm and gangrun
			}
			id := b.submit(`mkdir -p `+dir+`/ck; cd `+dir+`
`+line+`gangrun run -n 6 --mpi none --preflight off --requeue 4 --host-timeout 5s --orphan-grace 8s --checkpoint-dir ck -- bash -c '
step=0; [[ -z $GANGRUN_RESUME_FROM ]] || { step=${GANGRUN_RESUME_FROM##*step_}; step=${step%.json}; }
while ((step < 30)); do
	((++step)); echo "step $step/30"; sleep 0.2
	((RANK)) || { echo {} > .new; mv .new ck/step_$step.json; }
done'
exit`, "-N3", "--no-kill", "--requeue")
			b.awaitFile(t, id, fmt.Sprintf("%s/ck/step_%d.json", dir, 1+random.IntN(20)))
			if err := f.do(b, random, id); err != nil {
				t.Fatal(err)
			}
			j, err := b.Await(id, 6*time.Minute, slurm.Job.Ended)
			out, _ := os.ReadFile(b.Output("bob", id))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			ended[f.name+": "+j.State()]++
			_, missing := os.Stat(filepath.Join(b.dir, dir, "ck/step_30.json"))
			switch {
			case j.State() == "COMPLETED" && missing != nil:
				t.Errorf("it counts as completed, but is not: %v\n%s", missing, out)
			case j.State() != "COMPLETED" && !f.mayEnd:
				t.Errorf("%s: %s\n%s", line, j.State(), out)
			}
			b.nothingLeft()
		})
	}
	t.Logf("jobs ended as %v", ended)
}
