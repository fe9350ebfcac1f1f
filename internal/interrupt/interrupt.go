// Package interrupt ends a context when the user sends a signal, because the user no longer wants to wait. It is for
// commands that the user may end at any time. Commands that control a run handle signals in another way.
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

// Context returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. The cause of the
// context is then a Signal. The signals in exempt do not end the context. The caller must call
// stop.
func Context(exempt ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !slices.Contains(exempt, sig) {
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
