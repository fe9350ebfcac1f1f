package stacks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/faulthandler"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// ranks starts four ranks that print "rank RANK PID", and returns them.
func (b *bed) ranks(env []string, argv ...string) []Target {
	b.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		b.Fatal(err)
	}
	_, lines := b.run(append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"), path, argv...)
	var targets []Target
	for len(targets) < 4 && lines.Scan() {
		var t Target
		if _, err := fmt.Sscanf(lines.Text(), "rank %d %d", &t.Rank, &t.PID); err == nil {
			targets = append(targets, t)
		}
	}
	if len(targets) != 4 {
		b.Fatalf("got %+v", targets)
	}
	return targets
}

// kill ends ranks, which mpirun leaves behind when it is killed, and which would use all cores.
func (b *bed) kill(targets []Target) {
	for _, t := range targets {
		b.signal(t.PID, unix.SIGKILL)
	}
}

// TestMissingRank: real ranks in C and in Python with MPICH and Open MPI, of which one never enters
// an allreduce. Their stacks are grouped, and that rank is named.
func TestMissingRank(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	for _, flavour := range []struct {
		name, cc, run string
		options       []string
	}{
		{"MPICH", "mpicc.mpich", "mpiexec.mpich", nil},
		{"Open MPI", "mpicc.openmpi", "mpirun.openmpi", []string{"--oversubscribe", "--mca", "btl", "self,tcp"}},
	} {
		t.Run(flavour.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "missing")
			if out, err := exec.Command(flavour.cc, "-g", "-O0", "-o", program, "testdata/missing.c").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			b := newBed(t) // from now on, it reaps every child of this process
			argv := append(append([]string{flavour.run}, flavour.options...), "-n", "4")
			targets := b.ranks(nil, append(argv, program)...)
			for _, tool := range []job.StackTool{job.StackEU, job.StackGDB} {
				b.named(targets, []job.StackTool{tool}, "MPI_Allreduce (missing.c:", " average)", "read", " load)")
			}
			b.kill(targets)
			if flavour.name != "Open MPI" { // the mpi4py of Debian
				return
			}
			module := t.TempDir()
			if err := faulthandler.Install(module); err != nil {
				t.Fatal(err)
			}
			script, err := filepath.Abs("testdata/missing.py")
			if err != nil {
				t.Fatal(err)
			}
			const each = `GANGRUN_FAULTHANDLER=$PWD/faults.$OMPI_COMM_WORLD_RANK exec "$0" "$@"`
			targets = b.ranks(faulthandler.Environ(os.Getenv("PYTHONPATH"), module, ""), append(argv, "sh", "-c", each, python, script)...)
			for i := range targets {
				targets[i].Faults = filepath.Join(b.dir, fmt.Sprintf("faults.%d", targets[i].Rank))
			}
			b.named(targets, []job.StackTool{job.StackEU}, "MPI_Allreduce (missing.py:8 average)", "", "", "(missing.py:12 load)")
			b.kill(targets)
		})
	}
}

// named collects the stacks until every rank has arrived, and checks where the ranks are found.
func (b *bed) named(targets []Target, tools []job.StackTool, waits, caller, call, load string) {
	b.Helper()
	c := b.only(tools...)
	var last string
	var stacks []job.RankStack
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); { // gdb may need longer than it gets
		stacks = c.Collect(b.Context(), targets)
		groups := stacktree.Groups(stacks)
		last = stacktree.Text(groups)
		odd := stacktree.Odd(groups, nil)
		if len(groups) == 2 && strings.HasPrefix(groups[0].Where, waits) && strings.HasSuffix(groups[0].Where, caller) && groups[0].Collective &&
			strings.HasPrefix(groups[1].Where, call) && strings.HasSuffix(groups[1].Where, load) && slices.Equal(odd.Ranks, []int{2}) && odd.Confidence >= 0.9 {
			b.Log(last)
			return
		}
	}
	b.Errorf("got %s\n%+v", last, stacks)
}
