package slurm

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/remote/sshclient"
	"github.com/gangrun/gangrun/internal/remote/stepserver"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "step" {
		os.Exit(stepserver.Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// fakeSrun is a srun whose nodes are all this machine. The node named down cannot be used; a step that includes it
// fails. When the srun dies, its servers die.
const fakeSrun = `#!/bin/bash
while [[ $1 != -- ]]; do
	[[ $1 != -w ]] || nodes=${2//,/ }
	shift
done
shift
for node in $nodes; do
	[[ $node != down* ]] || { echo "srun: error: Unable to create step for job 1: Requested node configuration is not available" >&2; exit 1; }
done
for node in $nodes; do SLURMD_NODENAME=$node setpriv --pdeathsig KILL "$@" & done
wait
`

func open(t *testing.T, nodes ...string) *Steps {
	t.Helper()
	dir := t.TempDir()
	srun := filepath.Join(dir, "srun")
	if err := os.WriteFile(srun, []byte(fakeSrun), 0o755); err != nil {
		t.Fatal(err)
	}
	return reopen(t, Options{Program: os.Args[0], Dir: dir, Nodes: nodes, Grace: time.Minute, Srun: srun})
}

func reopen(t *testing.T, o Options) *Steps {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// on runs a command on a node and returns its output.
func on(t *testing.T, s *Steps, node, line string) string {
	t.Helper()
	c, err := s.Client(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return runOn(t, c, line)
}

func runOn(t *testing.T, c *sshclient.Client, line string) string {
	t.Helper()
	session, err := c.Exec(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := io.ReadAll(session.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Wait(); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestSteps checks that one srun starts servers on all nodes, and that a later controller finds these servers.
func TestSteps(t *testing.T) {
	s := open(t, "h1", "h2")
	for _, node := range s.options.Nodes {
		if got := on(t, s, node, "echo $SLURMD_NODENAME"); got != node {
			t.Errorf("%s is %q", node, got)
		}
	}
	if len(s.steps) != 1 {
		t.Errorf("%d steps, want 1", len(s.steps))
	}
	later := reopen(t, s.options)
	if got := on(t, later, "h2", "echo there"); got != "there" || len(later.steps) != 0 {
		t.Errorf("%q after %d new steps", got, len(later.steps))
	}
}

// TestAnotherServer checks that a server that has ended is replaced, and that the others stay.
func TestAnotherServer(t *testing.T) {
	s := open(t, "h1", "h2")
	first, second := on(t, s, "h1", "echo $PPID"), on(t, s, "h2", "echo $PPID")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := on(t, s, "h1", "echo $PPID"); got == first {
		t.Errorf("the server is still process %s", got)
	}
	if got := on(t, s, "h2", "echo $PPID"); got != second {
		t.Errorf("the other server is process %s, and was %s", got, second)
	}
}

// TestNodeDown checks that the other nodes can be used if one node is down.
func TestNodeDown(t *testing.T) {
	s := open(t, "h1", "down2", "h3")
	if got := on(t, s, "h1", "echo there"); got != "there" {
		t.Error(got)
	}
	_, err := s.Client(t.Context(), "down2")
	if err == nil || !strings.Contains(err.Error(), "on down2: Unable to create step for job 1: Requested node") {
		t.Errorf("%v", err)
	}
	if got := on(t, s, "h3", "echo there"); got != "there" {
		t.Error(got)
	}
}

// TestSrunKilled checks that servers that have ended with their srun are replaced.
func TestSrunKilled(t *testing.T) {
	s := open(t, "h1")
	before := on(t, s, "h1", "echo $PPID")
	s.mu.Lock()
	step := s.steps[0]
	s.mu.Unlock()
	if err := step.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-step.done
	if got := on(t, s, "h1", "echo $PPID"); got == before {
		t.Errorf("the server is still process %s", got)
	}
}

// TestOtherNode checks that only nodes of the job can be reached.
func TestOtherNode(t *testing.T) {
	s := open(t, "h1")
	if _, err := s.Client(t.Context(), "h9"); err == nil {
		t.Error("h9 is not in the job")
	}
}

// TestSrunEnv checks that variables that a user has set for other steps do not change gangrun's steps.
func TestSrunEnv(t *testing.T) {
	got := srunEnv([]string{"SLURM_JOB_ID=7", "SLURM_NTASKS=8", "SLURM_NTASKS_PER_NODE=2", "SRUN_CPUS_PER_TASK=2", "SLURM_MEM_PER_CPU=10", "SLURM_GPUS=8", "SLURM_GPUS_PER_TASK=1", "SLURM_GPU_BIND=none", "SLURM_CPUS_PER_GPU=4", "SLURM_GRES_FLAGS=x", "SLURM_EXACT=1", "SLURM_JOB_GPUS=0,1", "SLURM_STEP_ID=0", "SLURM_CONF=/x", "PATH=/bin", "PMIX_RANK=0"})
	if want := "SLURM_JOB_ID=7 SLURM_JOB_GPUS=0,1 SLURM_CONF=/x PATH=/bin"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
