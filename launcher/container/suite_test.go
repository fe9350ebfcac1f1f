package container_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/agent"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/internal/testcontainerd"
	"github.com/gangrun/gangrun/internal/testimage"
	"github.com/gangrun/gangrun/internal/watchdog"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/local"
	"github.com/gangrun/gangrun/launcher/suite"
)

// TestMain makes the test binary serve as the agent, on the host and in containers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(agent.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "enter" {
		os.Exit(watchdog.Enter(os.Args[2:]))
	}
	// Without this setting, the race detector would delay the end of every agent by a second.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	goleak.VerifyTestMain(m)
}

// TestSuite runs some tests of the suite. TestSoakSuite runs all of them.
func TestSuite(t *testing.T) {
	bed := suiteBed(t)
	bed.Only = []string{"environment", "missing program", "output", "stdin", "contained", "cancel early", "grace", "signals", "strays", "descriptors"}
	suite.Run(t, bed)
}

// suiteBed returns a bed with containers. Their image has no programs; those of the host are mounted.
func suiteBed(t *testing.T) suite.Bed {
	daemon := testcontainerd.Start(t)
	t.Setenv("CONTAINERD_ADDRESS", daemon.Socket)
	empty := testimage.Image{Links: map[string]string{}}
	mounts := []job.Mount{{Source: "/usr", Target: "/usr"}, {Source: "/etc", Target: "/etc"}}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if to, err := os.Readlink(dir); err == nil {
			empty.Links[dir] = to
		} else {
			mounts = append(mounts, job.Mount{Source: dir, Target: dir, Auto: true})
		}
	}
	archive, err := os.ReadFile(empty.Archive(t, "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	return suite.Bed{
		Dialer: func(t *testing.T) agents.Dialer { return local.Dialer{LogDir: t.TempDir()} },
		Agents: func(self int) map[string][]int { return agentsOf(self) },
		Box:    &job.Box{Mounts: mounts},
		Image: &launcher.Image{Name: "gangrun.local/suite:1", Open: func() (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(archive)), int64(len(archive)), nil
		}},
	}
}

// agentsOf returns the agents of the host below a process, and their watchdogs.
func agentsOf(self int) map[string][]int {
	found := map[string][]int{}
	is := func(pid int, word string) bool { return strings.Contains(strings.Join(procfs.Args(pid), " "), word) }
	for _, outer := range procfs.Children(self) {
		if !is(outer, " agent ") {
			continue
		}
		found["outer watchdog"] = append(found["outer watchdog"], outer)
		for _, inner := range procfs.Children(outer) {
			found["watchdog"] = append(found["watchdog"], inner)
			for _, worker := range procfs.Children(inner) {
				if is(worker, " worker") {
					found["agent"] = append(found["agent"], worker)
				}
			}
		}
	}
	return found
}
