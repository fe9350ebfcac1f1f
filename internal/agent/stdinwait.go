package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// A rank of a trial waits for its standard input when it was seen reading the empty pipe
// this many times in a row.
const (
	stdinEvery = 100 * time.Millisecond
	stdinLooks = 10
)

// stdinWait looks whether a rank waits for standard input that does not come.
type stdinWait struct {
	rank  *rank
	looks int // at which it was reading, in a row
	told  bool
}

// look looks once more, and reports whether the rank has now waited for long enough.
func (w *stdinWait) look() bool {
	if w.told || w.rank.child == nil || w.rank.child.Ended() {
		return false
	}
	pipe, empty := w.rank.stdinPipe()
	if !empty || !readsFrom(pipe, w.rank.child.PID) {
		w.looks = 0
		return false
	}
	w.looks++
	w.told = w.looks == stdinLooks
	return w.told
}

// stdinPipe returns the name by which /proc knows the pipe to a rank, and whether all
// that was written into it has been read.
func (r *rank) stdinPipe() (name string, empty bool) {
	raw, err := r.stdin.SyscallConn()
	if err != nil {
		return "", false // closed
	}
	err = raw.Control(func(fd uintptr) {
		var stat unix.Stat_t
		n, failed := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		empty = failed == nil && n == 0 && unix.Fstat(int(fd), &stat) == nil
		name = fmt.Sprintf("pipe:[%d]", stat.Ino)
	})
	return name, err == nil && empty
}

// readsFrom reports whether a process, or one below it, is blocked in read(2) on its
// descriptor 0, and that is the pipe. See proc_pid_syscall(5).
func readsFrom(pipe string, pid int) bool {
	pids := []int{pid}
	for _, p := range process.Descendants(pid) {
		pids = append(pids, p.PID)
	}
	for _, pid := range pids {
		proc := "/proc/" + strconv.Itoa(pid)
		call, err := os.ReadFile(proc + "/syscall")
		if err != nil || !strings.HasPrefix(string(call), fmt.Sprintf("%d 0x0 ", unix.SYS_READ)) {
			continue
		}
		if on, err := os.Readlink(proc + "/fd/0"); err == nil && on == pipe {
			return true
		}
	}
	return false
}

// stdinWaits returns what looks at the ranks of a trial that are fed.
func (g *gang) stdinWaits() (waits []*stdinWait, tick <-chan time.Time, stop func()) {
	for _, r := range g.ranks {
		if r.stdin != nil && g.start.TellStdin {
			waits = append(waits, &stdinWait{rank: r})
		}
	}
	if len(waits) == 0 {
		return nil, nil, func() {}
	}
	ticker := time.NewTicker(stdinEvery)
	return waits, ticker.C, ticker.Stop
}

// tellStdin tells which ranks wait for standard input.
func (g *gang) tellStdin(waits []*stdinWait) {
	for _, w := range waits {
		if w.look() {
			g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStdin, Rank: w.rank.number, Host: g.host})
		}
	}
}
