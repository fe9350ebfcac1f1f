package hosts

import (
	"path/filepath"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testbuild"
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/kubectl"
	"github.com/gangrun/gangrun/launcher/ssh"
	"github.com/gangrun/gangrun/launcher/suite"
	"github.com/gangrun/gangrun/topology/inventory"
)

// podBed returns a bed for the suite whose agents are started with a fake kubectl.
func podBed(t *testing.T) suite.Bed {
	t.Helper()
	b := &farBed{dir: t.TempDir()}
	c := newCluster(t, b.dir)
	path := filepath.Join(b.dir, "gangrun")
	if err := testbuild.Gangrun(path); err != nil {
		t.Fatal(err)
	}
	program, err := ssh.ProgramAt(path, "gangrun")
	if err != nil {
		t.Fatal(err)
	}
	pods := podDialer{kubectl.Pods{Program: c.kubectl()}, func(host string) string { return "pod-of-" + host }}
	return suite.Bed{
		Dialer: func(t *testing.T) agents.Dialer { return b.agents(t, pods, program) },
		Agents: b.agentProcesses,
		Far: &suite.Far{
			Cut:     func() { c.set(true) },
			Restore: func() { c.set(false) },
			Left:    b.left,
			Break:   map[string]func(*testing.T){"bridge killed": b.end("bridge"), "kubectl killed": b.end("kubectl")},
		},
	}
}

// TestPodSuite runs the tests of the suite that depend most on how processes are started. TestSoakPodSuite runs all
// tests.
func TestPodSuite(t *testing.T) {
	t.Parallel()
	bed := podBed(t)
	bed.Only = []string{"good", "one agent a host", "environment", "logs are whole", "strays", "a connection that is cut and restored", "a connection that breaks", "lost agent", "nothing is left", "given up"}
	suite.Run(t, bed)
}

// TestLauncherOf checks that the choice of the user decides how other hosts are reached, and then the batch system.
func TestLauncherOf(t *testing.T) {
	for name, c := range map[string]struct {
		mode  job.LauncherMode
		kind  inventory.Kind
		agent string // the launch agent of Open MPI
		want  job.LauncherMode
	}{
		"hosts":                       {job.LauncherAuto, inventory.Flag, "", job.LauncherSSH},
		"a Slurm job":                 {job.LauncherAuto, inventory.Slurm, "", job.LauncherSlurm},
		"other hosts in a Slurm job":  {job.LauncherAuto, inventory.Flag, "", job.LauncherSSH},
		"SSH in a Slurm job":          {job.LauncherSSH, inventory.Slurm, "", job.LauncherSSH},
		"MPI Operator v1":             {job.LauncherAuto, inventory.MPIOperator, "/etc/mpi/kubexec.sh", job.LauncherKubectl},
		"MPI Operator v1, a hostfile": {"", inventory.OpenMPI, "/etc/mpi/kubexec.sh", job.LauncherKubectl},
		"MPI Operator v1, over SSH":   {job.LauncherSSH, inventory.MPIOperator, "/etc/mpi/kubexec.sh", job.LauncherSSH},
		"MPI Operator v2":             {job.LauncherAuto, inventory.MPIOperator, "", job.LauncherSSH},
		"another agent of Open MPI":   {job.LauncherAuto, inventory.Flag, "/usr/bin/ssh", job.LauncherSSH},
		"pods":                        {job.LauncherKubectl, inventory.Flag, "", job.LauncherKubectl},
	} {
		lookup := func(variable string) (string, bool) {
			return c.agent, variable == "OMPI_MCA_plm_rsh_agent" && c.agent != ""
		}
		if got := launcherOf(c.mode, c.kind, lookup); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
