package controller

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/turn"
)

// asker implements supervisor.Asker.
type asker struct {
	how    job.BeforeStop
	file   string // the file that asks, for job.BeforeStopFile
	signal func(syscall.Signal)
	turn   turn.Turn // the turn of the callers that make or remove the file
}

func newAsker(how job.BeforeStop, file string, signal func(syscall.Signal)) asker {
	return asker{how, file, signal, turn.New()}
}

// askLimit limits the time in which a file system must make or remove the file.
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

// within calls do, which makes or removes the file. It waits until do returns, but at most for askLimit or until ctx
// ends. If the file system has not answered by then, one goroutine is left, which nobody can end. The next call of
// within waits for that goroutine. So the file is never made late, after it was removed.
func (a asker) within(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, askLimit, errNoAnswer)
	defer cancel()
	_, err := turn.Do(ctx, a.turn, 0, func() (struct{}, error) { return struct{}{}, do() })
	return err
}
