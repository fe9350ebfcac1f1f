// Package presence finds out whether the controller of a run still runs, on this host or
// another one. If the controller is gone, the package says what to do.
package presence

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// CheckEvery is the time between two checks whether the controller of a run still runs.
const CheckEvery = 500 * time.Millisecond

// MissingController returns the controller of a run if the controller seems to be gone: it is
// on another host, the run has not ended, and nobody holds the lock on the run's directory.
// Otherwise it returns nil.
func MissingController(run home.Run) *job.Controller {
	s, err := run.Summary()
	if err != nil || s.Controller == nil || s.State.Final() {
		return nil
	}
	if _, known := home.Alive(*s.Controller); known {
		return nil
	}
	if held, seen := run.Controlled(); held || !seen {
		return nil
	}
	// It may have released the lock at the end of the run, after the summary was read.
	if now, err := run.Summary(); err != nil || now.State.Final() || now.Controller == nil || *now.Controller != *s.Controller {
		return nil
	}
	return s.Controller
}

// LockState says in words whether a controller on another host holds its lock. held and known
// are the results of home.Run.Controlled.
func LockState(held, known bool) string {
	switch {
	case !known:
		return "cannot be seen from here"
	case held:
		return "holds the lock on the run's directory, as far as can be seen from here"
	}
	return "does not hold the lock on the run's directory any more, as far as can be seen from here"
}

// IfGone returns a hint that says what to type if a controller on another host is gone.
func IfGone(run home.Run) string {
	return fmt.Sprintf("if it is gone, gangrun attach --force %[1]s goes on with the run, and gangrun stop --force %[1]s ends it", run.ID)
}

// Name returns the name of a controller, as in "process 12 on h1".
func Name(c job.Controller) string {
	return fmt.Sprintf("process %d on %s", c.PID, text.Printable(c.Host))
}
