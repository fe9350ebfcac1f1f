package testhosts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is a process on a host or on the controller.
type Process struct {
	PID   int    // in this process's namespace
	Name  string // the name in the kernel: the first 15 bytes of the program's name
	Args  []string
	State byte // as in proc(5); never Z, because such processes have ended
	ppid  int
}

// String returns the PID and the command line.
func (p Process) String() string { return fmt.Sprintf("%d %q", p.PID, p.Args) }

// Processes returns the host's processes that were started with the marker, a string such as
// GANGRUN_RUN=..., in their environment. If marker is "", it returns all processes. It returns
// none if the host is off.
func (h *Host) Processes(marker string) ([]Process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.up() {
		return nil, nil
	}
	return processes(h.init, "pid", marker)
}

// processes returns the processes in the same namespace, of a kind, as the process pid.
func processes(pid int, kind, marker string) ([]Process, error) {
	same, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, dir := range dirs {
		// A process that cannot be read has ended.
		if link, err := os.Readlink(filepath.Join(dir, "ns", kind)); err != nil || link != same {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains(string(environ), marker) {
			continue
		}
		if p, ok := process(dir); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// process reads a directory of /proc. It returns false if the process has ended.
func process(dir string) (Process, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, false
	}
	// PID (NAME) STATE PPID ..., where NAME may have any bytes.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	p := Process{Name: string(stat[open+1 : end])}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 2 || strings.ContainsAny(fields[0], "ZX") {
		return Process{}, false
	}
	p.State = fields[0][0]
	if p.ppid, err = strconv.Atoi(fields[1]); err != nil {
		return Process{}, false
	}
	if p.PID, err = strconv.Atoi(filepath.Base(dir)); err != nil {
		return Process{}, false
	}
	args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return Process{}, false
	}
	p.Args = strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")
	return p, true
}
