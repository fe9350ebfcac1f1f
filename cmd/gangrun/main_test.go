package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain puts a copy of the test binary that behaves like gangrun in PATH. Scripts, and tests that start "gangrun"
// themselves, use this copy, and agents are started from it.
func TestMain(m *testing.M) {
	testscript.Main(checked{m}, map[string]func(){"gangrun": main})
}

// checked runs the tests and then checks that they have left no goroutines.
type checked struct{ m *testing.M }

func (c checked) Run() int {
	flag.Parse()
	// Without this setting, the race detector would delay the end of every process by a second.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The process that started the tests may have made them ignore these signals, as a shell does for a background
	// job. gangrun would then ignore them, too. A new process has the default action for signals that are caught here.
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	code := c.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
