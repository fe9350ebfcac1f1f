package controller

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// asker implements supervisor.Asker.
type asker struct {
	how    job.BeforeStop
	file   string // which asks, with job.BeforeStopFile
	signal func(syscall.Signal)
	turn   chan struct{} // has a value while the file is made or removed
}

func newAsker(how job.BeforeStop, file string, signal func(syscall.Signal)) asker {
	return asker{how, file, signal, make(chan struct{}, 1)}
}

// askLimit is how long a file system may take to make or remove a file.
const askLimit = 10 * time.Second

// Ask sends the signal, or makes the file.
func (a asker) Ask(ctx context.Context) error {
	if n := a.how.Number(); n != 0 {
		a.signal(syscall.Signal(n))
		return nil
	}
	return a.within(ctx, func() error { return os.WriteFile(a.file, nil, 0o644) })
}

// Withdraw removes the file.
func (a asker) Withdraw(ctx context.Context) error {
	if a.how != job.BeforeStopFile {
		return nil
	}
	return a.within(ctx, func() error {
		if err := os.Remove(a.file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// errNoAnswer is the error if a file system does not answer.
var errNoAnswer = errors.New("the file system does not answer")

// within does something with the file, and waits for it no longer than askLimit and until ctx ends. Nobody can end a call of a
// file system that does not answer, so the goroutine that does it may be left. There is at most one: the next call waits
// for its end, for as long, so that a file that is made late is not made after it was removed.
func (a asker) within(ctx context.Context, do func() error) error {
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	select {
	case a.turn <- struct{}{}:
	case <-limit.C:
		return errNoAnswer
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() {
		err := do()
		<-a.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return errNoAnswer
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
