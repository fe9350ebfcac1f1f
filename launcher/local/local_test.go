package local_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/agent"
	"github.com/gangrun/gangrun/internal/contain"
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/local"
	"github.com/gangrun/gangrun/launcher/suite"
)

// TestMain makes the test binary serve as the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(agent.Main(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "contain" {
		os.Exit(contain.Main(os.Args[0], os.Args[2:]))
	}
	// Without this setting, the race detector would delay the end of every agent by a second.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	goleak.VerifyTestMain(m)
}

func TestSuite(t *testing.T) {
	suite.Run(t, suite.Bed{
		Dialer: func(t *testing.T) agents.Dialer { return local.Dialer{LogDir: t.TempDir()} },
		Agents: watchdogsAndAgents,
	})
}

// watchdogsAndAgents returns the watchdogs below a process, and the agents below these watchdogs.
func watchdogsAndAgents(self int) map[string][]int {
	found := map[string][]int{}
	for _, outer := range children(self) {
		if !bytes.Contains(cmdline(outer), []byte("\x00agent\x00")) {
			continue
		}
		found["outer watchdog"] = append(found["outer watchdog"], outer)
		for _, watchdog := range children(outer) {
			found["watchdog"] = append(found["watchdog"], watchdog)
			for _, worker := range children(watchdog) {
				if bytes.HasSuffix(cmdline(worker), []byte("\x00worker\x00")) {
					found["agent"] = append(found["agent"], worker)
				}
			}
		}
	}
	return found
}

func cmdline(pid int) []byte {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return data
}

func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/children"))
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		for _, field := range bytes.Fields(data) {
			if n, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}
