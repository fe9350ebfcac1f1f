package agent

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
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

// parseStat reads fields 1, 3, 4 and 22. The command in field 2 may hold any
// byte, so what counts begins behind its last parenthesis.
func parseStat(data []byte) (process, bool) {
	space, paren := bytes.IndexByte(data, ' '), bytes.LastIndexByte(data, ')')
	if space < 0 || paren < space {
		return process{}, false
	}
	fields := bytes.Fields(data[paren+1:])
	if len(fields) < 20 {
		return process{}, false
	}
	pid, err1 := strconv.Atoi(string(data[:space]))
	parent, err2 := strconv.Atoi(string(fields[1]))
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return process{}, false
	}
	state := fields[0][0]
	return process{pid, parent, start, state == 'Z' || state == 'X'}, true
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
