package agent

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/leftover"
)

// process is one entry of /proc, as far as ending it needs.
type process struct {
	pid, parent int
	start       uint64 // clock ticks after boot: with pid, an identity
	zombie      bool
}

// readProcess reads /proc/PID/stat. See proc_pid_stat(5).
func readProcess(pid int) (process, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(data)
}

func parseStat(data []byte) (process, bool) {
	p, ok := leftover.ParseStat(data)
	return process{p.PID, p.Parent, p.Start, p.Ended()}, ok
}

// descendants returns every live process below the process root, children
// before grandchildren. A process that forks meanwhile can be missed, so who
// wants an end of them asks until none is left.
func descendants(root int) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read is what there is
	below := map[int][]process{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid); ok {
				below[p.parent] = append(below[p.parent], p)
			}
		}
	}
	var found []process
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range below[queue[0]] {
			queue = append(queue, p.pid)
			if !p.zombie {
				found = append(found, p)
			}
		}
	}
	return found
}

// send signals exactly the process that was seen, never a later one that got
// its PID: a pidfd is opened and the identity checked before the signal.
func (p process) send(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return // it is gone
	}
	defer unix.Close(fd)
	if now, ok := readProcess(p.pid); ok && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may end meanwhile
	}
}
