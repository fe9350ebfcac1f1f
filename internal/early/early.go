// Package early catches the signals of gangrun's commands, and starts the work of its hidden
// commands, before Go initialises the rest of the program. This saves time: a gang waits for its
// agents, and each shim is a new process of gangrun. Go initialises a package as soon as its
// imports are initialised, packages with smaller import paths first. This package imports little, and
// not net, so it is among the first.
package early

import (
	"os"
	"slices"

	"github.com/gangrun/gangrun/internal/contain"
	"github.com/gangrun/gangrun/internal/selfcheck"
	"github.com/gangrun/gangrun/internal/shim"
	"github.com/gangrun/gangrun/internal/watchdog"
)

func init() {
	if len(os.Args) < 2 {
		return
	}
	if slices.Contains(commands, os.Args[1]) {
		caught = catch()
		return
	}
	switch os.Args[1] {
	case "shim":
		os.Exit(shim.Main())
	case "rsh":
		os.Exit(shim.Rsh(os.Args[2:]))
	case "self-check":
		os.Exit(selfcheck.Main(os.Args[2:]))
	case "contain":
		os.Exit(contain.Main(os.Args[0], os.Args[2:]))
	case "enter":
		os.Exit(watchdog.Enter(os.Args[2:]))
	case "agent":
		if args := os.Args[2:]; watchdog.IsWatchdog(args) {
			if end, err := watchdog.Wait(args); err == nil && end.Clean() {
				os.Exit(0)
			}
		}
	}
}
