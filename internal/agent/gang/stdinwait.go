package gang

import (
	"context"
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

// watchStdin looks at the ranks of a trial once every stdinEvery. A rank counts as waiting for standard input if
// stdinLooks consecutive looks have found it reading the empty pipe.
const (
	stdinEvery = 100 * time.Millisecond
	stdinLooks = 10
)

// watchStdin reports each rank that waits for standard input although none comes. It reports a rank once, and only if
// the controller wants to know that. It returns when ctx ends.
func (g *Gang) watchStdin(ctx context.Context) {
	looks := map[*Rank]int{} // how many looks in a row have found the rank waiting
	for _, r := range g.ranks {
		if r.stdin != nil && g.Start.TellStdin {
			looks[r] = 0
		}
	}
	if len(looks) == 0 {
		return
	}
	tick := time.NewTicker(stdinEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for r, n := range looks {
			switch {
			case !r.waitsForStdin():
				looks[r] = 0
			case n+1 < stdinLooks:
				looks[r]++
			default:
				delete(looks, r)
				g.Reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStdin, Rank: r.number, Host: g.Host})
			}
		}
	}
}

// waitsForStdin reports whether the rank, or a descendant of it, is reading its standard input while that is empty.
func (r *Rank) waitsForStdin() bool {
	pid, ok := r.Living()
	if !ok {
		return false
	}
	pipe, empty := r.stdinPipe()
	return empty && readsFrom(pipe, pid)
}

// stdinPipe returns the name that /proc has for the pipe to a rank. empty is true if all data in the pipe has been
// read.
func (r *Rank) stdinPipe() (name string, empty bool) {
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

// readsFrom reports whether a process or one of its descendants is blocked in read(2) on its descriptor 0, and whether
// that descriptor is the pipe. See proc_pid_syscall(5).
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
