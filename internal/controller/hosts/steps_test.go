package hosts

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testbuild"
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/slurm"
	"github.com/gangrun/gangrun/launcher/ssh"
	"github.com/gangrun/gangrun/launcher/suite"
)

// srun is a fake srun whose nodes are all this machine. It ends without its servers.
const srun = `#!/bin/bash
while [[ $1 != -- ]]; do
	[[ $1 != -w ]] || nodes=${2//,/ }
	shift
done
shift
for node in $nodes; do SLURMD_NODENAME=$node "$@" & done
wait
`

// stepBed has agents that are started by the servers of a fake srun.
type stepBed struct{ farBed }

func newStepBed(t *testing.T) *stepBed {
	t.Helper()
	b := &stepBed{farBed{dir: t.TempDir()}}
	if err := testbuild.Gangrun(b.program()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "srun"), []byte(srun), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *stepBed) program() string { return filepath.Join(b.dir, "gangrun") }

// dialer returns a Dialer for a job of its own.
func (b *stepBed) dialer(t *testing.T) agents.Dialer {
	t.Helper()
	steps, err := slurm.Open(slurm.Options{Program: b.program(), Dir: t.TempDir(), Nodes: []string{"h1", "h2", "h3", "h4"}, Grace: time.Minute, Srun: filepath.Join(b.dir, "srun")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := steps.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b.agents(t, stepDialer{steps}, ssh.Program{})
}

// suiteBed returns the bed for the suite.
func (b *stepBed) suiteBed() suite.Bed {
	return suite.Bed{
		Dialer: b.dialer,
		Agents: b.agentProcesses,
		Far: &suite.Far{
			Cut:     func() { _ = b.signal("step", syscall.SIGSTOP) },
			Restore: func() { _ = b.signal("step", syscall.SIGCONT) },
			Left:    b.left,
			Break:   map[string]func(*testing.T){"bridge killed": b.end("bridge"), "server killed": b.end("step")},
		},
	}
}

// TestStepSuite runs the tests of the suite that depend most on the servers of a job. TestSoakStepSuite runs all
// tests. The tests of launcher/ssh run all of them over the same transport.
func TestStepSuite(t *testing.T) {
	t.Parallel()
	bed := newStepBed(t).suiteBed()
	bed.Only = []string{"good", "one agent a host", "environment", "logs are whole", "strays", "signals", "a connection that breaks", "lost agent", "nothing is left"}
	suite.Run(t, bed)
}
