package gang

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/job"
)

// Rank is one rank of the gang: its process and its streams.
type Rank struct {
	number    int
	out, err  *output.Stream
	pumps     sync.WaitGroup
	progress  *progress.Rank
	beats     *progress.Beats               // nil if the heartbeats could not be prepared
	stdin     *os.File                      // write end; nil if the rank reads /dev/null
	child     atomic.Pointer[process.Child] // nil before the process is started
	stackFile string                        // where its Python programs write their stacks; "" if they do not
	flight    flight                        // the dumps of its flight recorder
	errorFile string                        // for the exception of the rank; empty if the file is the user's
}

// Number returns the rank's number in the gang.
func (r *Rank) Number() int { return r.number }

// Living returns the PID of the rank's process. ok is false if it was not started or has
// exited.
func (r *Rank) Living() (pid int, ok bool) {
	child := r.child.Load()
	if child == nil || child.Ended() {
		return 0, false
	}
	return child.PID, true
}

// Started reports whether the rank's process has been started.
func (r *Rank) Started() bool { return r.child.Load() != nil }

// newRank makes the log files of a rank in the directory logDir, and the pipes or pseudoterminals that connect them
// with its streams. fork starts the rank's process. stdout opens the rank's standard output. newRank calls options for
// each of the two streams. If newRank returns an error, it has closed and removed everything that it made.
func newRank(number int, logDir string, feeds bool, stdout output.Opener, options func() output.Options) (r *Rank, child []*os.File, err error) {
	r = &Rank{number: number}
	defer func() {
		if err == nil {
			return
		}
		for _, f := range child {
			_ = f.Close()
		}
		if r.stdin != nil {
			_ = r.stdin.Close()
		}
		for _, s := range []*output.Stream{r.out, r.err} {
			if s != nil {
				err = errors.Join(err, s.Discard())
			}
		}
	}()
	var stdin, out, errs *os.File
	if stdin, err = r.openStdin(feeds); err != nil {
		return r, nil, err
	}
	child = append(child, stdin)
	to := options()
	to.Rank, to.Path = number, filepath.Join(logDir, job.LogName(number, "out"))
	if r.out, out, err = output.New(to, stdout); err != nil {
		return r, child, err
	}
	child = append(child, out)
	to = options()
	to.Rank, to.Stderr, to.Path = number, true, filepath.Join(logDir, job.LogName(number, "err"))
	if r.err, errs, err = output.New(to, output.OpenPipe); err != nil {
		return r, child, err
	}
	return r, append(child, errs), nil
}

// openStdin returns the process's end of its standard input. That is /dev/null or a pipe. The rank keeps the other end
// of the pipe.
func (r *Rank) openStdin(feeds bool) (*os.File, error) {
	if !feeds {
		return process.DevNull()
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(fds[1], true); err != nil { // only our end
		return nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	r.stdin = os.NewFile(uintptr(fds[1]), "stdin")
	return os.NewFile(uintptr(fds[0]), "stdin"), nil
}

// pump closes the process's ends of its streams, and starts to move the output that comes through them. If the rank has
// no process, pump also closes the rank's standard input.
func (r *Rank) pump(streams []*os.File, release <-chan struct{}) {
	for _, f := range streams {
		_ = f.Close()
	}
	for _, s := range []*output.Stream{r.out, r.err} {
		r.pumps.Go(func() { s.Pump(release) })
	}
	if r.child.Load() == nil && r.stdin != nil {
		_ = r.stdin.Close()
	}
}

// evidence returns the last lines of both streams of a rank.
func (r *Rank) evidence(host string) []job.Line {
	return append(r.out.Evidence(host), r.err.Evidence(host)...)
}

// exitOf returns the Exit for a process whose end the kernel has reported.
func exitOf(rank int, child *process.Child, host string, stopped bool) job.Exit {
	e := job.Exit{Rank: rank, Host: host, Time: child.When, PID: child.PID, Stopped: stopped}
	if w := child.Status; w.Signaled() {
		e.Status, e.Signal, e.Core = job.Signalled, int(w.Signal()), w.CoreDump()
	} else {
		e.Status, e.Code = job.Exited, w.ExitStatus()
	}
	return e
}
