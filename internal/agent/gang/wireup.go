package gang

import (
	"context"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Wireup helps the ranks of a gang to find each other, on this host and on other hosts.
type Wireup interface {
	// Serve serves the ranks and the controller's requests until ctx ends. It runs in a
	// goroutine of its own, from before the first rank is started until every process
	// of the gang is gone.
	Serve(ctx context.Context, requests <-chan *wire.GangRequest)
	// Equip adds to c what its rank needs to find the other ranks.
	Equip(c *Command) error
	// Settle waits a moment for the last messages of a rank that has just exited with code 0. It waits at most
	// until release is closed.
	Settle(rank int, release <-chan struct{})
	// Phase returns where a rank is in its MPI library.
	Phase(rank int) job.RankPhase
	// Mark adds to a rank's Exit what the rank reported before it ended.
	Mark(e *job.Exit)
}

// Runtime is a Wireup that starts the ranks itself, through processes of its own such as mpirun. It passes each
// rank that it has started to Gang.Adopt.
type Runtime interface {
	Wireup
	// Launch starts the runtime, which then starts the ranks.
	Launch(ranks []*Command) error
	// Owns reports whether a process belongs to the runtime and not to a rank.
	Owns(pid int) bool
	// Ending is called when the end of the gang begins. After that, the runtime must not start any rank.
	Ending()
	// Dismiss ends the runtime's processes. It is called when the gang is being ended and all ranks have
	// exited.
	Dismiss()
	// Log returns the stream of the runtime's own output.
	Log() *output.Stream
}
