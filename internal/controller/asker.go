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
}

// askLimit is how long a file system may take to make or remove a file.
const askLimit = 10 * time.Second

// Ask sends the signal, or makes the file.
func (a asker) Ask(ctx context.Context) error {
	if n := a.how.Number(); n != 0 {
		a.signal(syscall.Signal(n))
		return nil
	}
	return within(ctx, func() error { return os.WriteFile(a.file, nil, 0o644) })
}

// Withdraw removes the file.
func (a asker) Withdraw(ctx context.Context) error {
	if a.how != job.BeforeStopFile {
		return nil
	}
	return within(ctx, func() error {
		if err := os.Remove(a.file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// errNoAnswer is the error if a file system does not answer.
var errNoAnswer = errors.New("the file system does not answer")

// within does something with a file, and waits for it no longer than askLimit and until ctx ends. If the file system
// does not answer until then, a goroutine is left, which nobody can end.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return errNoAnswer
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
