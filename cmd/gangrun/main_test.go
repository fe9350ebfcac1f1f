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

// TestMain puts a copy of the test binary that behaves as gangrun on PATH, for
// scripts and for tests that start "gangrun" themselves; agents are started
// from that copy too.
func TestMain(m *testing.M) {
	testscript.Main(checked{m}, map[string]func(){"gangrun": main})
}

// checked runs the tests and then looks for goroutines that they have left.
type checked struct{ m *testing.M }

func (c checked) Run() int {
	flag.Parse()
	// Tests of this package wait for other processes most of the time.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// The race detector would hold up the end of every process for a second.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// What ran the tests may have them ignore these, as a shell's background job:
	// gangrun would then ignore them too. A program that is started gets the
	// default for what is caught here.
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
