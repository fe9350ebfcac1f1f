package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// rank is one process of the gang and its streams.
type rank struct {
	number   int
	out, err *output.Stream
	progress *progress.Rank
	stdin    *os.File       // write end; nil when the rank has /dev/null
	child    *process.Child // nil when it could not be started
	pumps    sync.WaitGroup

	errorFile string // to which it may write its exception; empty where that is not gangrun's
}

// newRank makes the log files of a rank and what connects its streams with them, in
// directory logDir; fork starts its process. stdout opens its standard output; options
// is called for each of the two streams. On an error nothing is left open, and no file is left
// behind that was not there before.
func newRank(number int, logDir string, feeds bool, stdout output.Opener, options func() output.Options) (r *rank, child []*os.File, err error) {
	r = &rank{number: number}
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

// openStdin returns the process's end of its standard input: /dev/null, or a
// pipe of which the rank keeps the other end.
func (r *rank) openStdin(feeds bool) (*os.File, error) {
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

// fork executes the rank's program with the given standard streams.
func (r *rank) fork(start process.Starter, group *cgroup.Group, path string, argv []string, attr *syscall.ProcAttr, streams []*os.File) (err error) {
	for _, f := range streams {
		attr.Files = append(attr.Files, f.Fd())
	}
	// A process group of its own, but no session: where the kernel shares the CPU by
	// sessions (sched(7), autogroup) ranks that wait for each other are faster in
	// one, by a tenth for 8 to 32 of them on two cores.
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if r.child, err = group.Start(start, path, argv, attr); err != nil {
		return &fs.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}

// pump closes the process's ends of its streams and starts to move what comes
// through them. A rank that has no process has nothing to be fed with.
func (r *rank) pump(streams []*os.File, release <-chan struct{}) {
	for _, f := range streams {
		_ = f.Close()
	}
	for _, s := range []*output.Stream{r.out, r.err} {
		r.pumps.Go(func() { s.Pump(release) })
	}
	if r.child == nil && r.stdin != nil {
		_ = r.stdin.Close()
	}
}

// exit turns what the kernel said into an Exit.
func (r *rank) exit(host string, stopped bool) job.Exit {
	e := job.Exit{Rank: r.number, Host: host, Time: r.child.When, PID: r.child.PID, Stopped: stopped}
	if w := r.child.Status; w.Signaled() {
		e.Status, e.Signal, e.Core = job.Signalled, int(w.Signal()), w.CoreDump()
	} else {
		e.Status, e.Code = job.Exited, w.ExitStatus()
	}
	return e
}

// startCode is the code that a shell gives to a program that it cannot start.
func startCode(err error) int {
	switch errorKind(err) {
	case job.ErrorMissing:
		return 127
	case job.ErrorPermission, job.ErrorKindOf:
		return 126
	}
	if errors.Is(err, unix.ENOEXEC) {
		return 126
	}
	return 0
}

// describe names what a start failed of.
func describe(start *wire.RankStart, err error) string {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Sprintf("%q is no program that this host can execute: %v", start.Argv[0], err)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.EBADF):
		return fmt.Sprintf("too many open files: the ranks of a host need about 8 each, raise the limit of %s (ulimit -n) or start fewer ranks: %v", limit(unix.RLIMIT_NOFILE), err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Sprintf("too many processes: raise this user's limit of %s (ulimit -u) or start fewer ranks: %v", limit(unix.RLIMIT_NPROC), err)
	}
	return err.Error()
}

// limit is one of this process's limits, in words.
func limit(resource int) string {
	var l unix.Rlimit
	switch err := unix.Getrlimit(resource, &l); {
	case err != nil:
		return "unknown size"
	case l.Cur == unix.RLIM_INFINITY:
		return "none"
	}
	return strconv.FormatUint(l.Cur, 10)
}

// evidence returns the last lines of both streams of a rank.
func (r *rank) evidence(host string) []job.Line {
	return append(r.out.Evidence(host), r.err.Evidence(host)...)
}
