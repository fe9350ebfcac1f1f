package openmpi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/launcher/openmpi"
)

// TestMain runs the tests. Depending on the first argument, it also acts as the rsh agent or the shim for the mpirun
// that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "test-agent":
			become(agent(os.Args[2], os.Args[3], strings.Join(os.Args[4:], " ")))
		case "test-shim":
			become(shim(os.Args[2], os.Args[3:]))
		}
	}
	goleak.VerifyTestMain(m)
}

// become executes another program in this one's place.
func become(argv, env []string, err error) {
	if err == nil {
		err = syscall.Exec(argv[0], argv, env)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(111)
}

func agent(dir, node, line string) (argv, env []string, err error) {
	argv, set, err := openmpi.ParseDaemon(line)
	if err != nil {
		return nil, nil, err
	}
	installation, ok := openmpi.Find("", os.Environ())
	if !ok {
		return nil, nil, fmt.Errorf("no Open MPI on PATH")
	}
	argv[0] = installation.Daemon
	env = override(os.Environ(), openmpi.Expand(set, os.Environ())...)
	env = override(env, openmpi.DaemonEnv(node, filepath.Join(dir, node, "tmp"), filepath.Join(dir, node, "shm"))...)
	return argv, env, nil
}

func shim(dir string, argv []string) ([]string, []string, error) {
	shm := filepath.Join(dir, os.Getenv("PMIX_HOSTNAME"), "shm")
	return argv, override(os.Environ(), openmpi.RankEnv(shm)...), nil
}

// override returns env with entries in place of those of the same names.
func override(env []string, entries ...string) []string {
	var kept []string
	for _, old := range env {
		name, _, _ := strings.Cut(old, "=")
		replaced := false
		for _, entry := range entries {
			replaced = replaced || strings.HasPrefix(entry, name+"=")
		}
		if !replaced {
			kept = append(kept, old)
		}
	}
	return append(kept, entries...)
}
