package slurm

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestCluster runs jobs on two hosts. It does not test the limit on memory, because gangs of other tests would see the
// record in the log of the kernel. TestSlurmMemory of cmd/gangrun tests that limit.
func TestCluster(t *testing.T) {
	Need(t)
	begun := time.Now()
	bed := testhosts.Up(t, 2)
	c := Up(t, bed, GPUs(2), Memory(512))
	t.Logf("up after %s", time.Since(begun))
	run := func(script string, flags ...string) (Job, string) {
		t.Helper()
		id, err := c.Submit("bob", "#!/bin/bash\n"+script, flags...)
		if err != nil {
			t.Fatal(err)
		}
		job, err := c.Await(id, time.Minute, Job.Ended)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := os.ReadFile(c.Output("bob", id))
		return job, string(out)
	}
	job, out := run("srun -N2 -n2 hostname; id -un", "-N2")
	lines := strings.Fields(out)
	slices.Sort(lines)
	if job.State() != "COMPLETED" || !slices.Equal(lines, []string{"bob", "h1", "h2"}) {
		t.Errorf("%v: %q", job, out)
	}
	const open = `for d in ` + "DEV" + `/nvidia[01]; do python3 -c 'import os, sys
try: os.open(sys.argv[1], os.O_RDWR)
except OSError as e: print(os.environ.get("SLURM_STEP_GPUS"), os.path.basename(sys.argv[1]), e.strerror)' $d; done`
	job, out = run("srun -n1 bash -c "+"'"+strings.ReplaceAll(strings.ReplaceAll(open, "DEV", c.path("dev")), "'", `'\''`)+"'", "-N1", "--gres=gpu:1")
	if job.State() != "COMPLETED" || !strings.Contains(out, "nvidia0 No such device") || !strings.Contains(out, "nvidia1 Operation not permitted") {
		t.Errorf("%v: %q", job, out)
	}
	if out, err := c.Exec(context.Background(), "bob", "ssh", "-o", "BatchMode=yes", "h1", "true"); err == nil {
		t.Errorf("bob can log in to h1: %s", out)
	}
}
