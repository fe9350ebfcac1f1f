// Package interrupt turns the signals of a user who no longer wants to wait into the end
// of a context. It is for commands that may be left at any time; a run that must be ended
// in order has its own handling of signals.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/gangrun/gangrun/internal/job"
)

// Signal is the cause of a context that a signal has ended.
type Signal struct{ Number syscall.Signal }

// Error returns the name of the signal, as in "SIGINT".
func (s Signal) Error() string { return job.SignalName(int(s.Number)) }

// Context returns a context that ends with the first SIGINT, SIGTERM or SIGHUP, except
// those listed in other, which keep their meaning. Its cause is then a Signal. The caller
// must call stop.
func Context(other ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !slices.Contains(other, sig) {
			signal.Notify(signals, sig)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case sig := <-signals:
			cancel(Signal{sig.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}
