package testhosts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is one that runs on a host or on the controller.
type Process struct {
	PID   int    // as this process sees it
	Name  string // the kernel's: at most 15 bytes of the program's
	Args  []string
	State byte // as in proc(5), never Z: those have ended
	ppid  int
}

// String is the PID and the command line.
func (p Process) String() string { return fmt.Sprintf("%d %q", p.PID, p.Args) }

// Processes returns the host's processes that have the marker, a string such as
// GANGRUN_RUN=..., in the environment that they were started with, or all for
// "". Of a host that is off there are none.
func (h *Host) Processes(marker string) ([]Process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.up() {
		return nil, nil
	}
	return processes(h.init, "pid", marker)
}

// processes returns those that share a namespace of a kind with the process pid.
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
		// What cannot be read has ended meanwhile.
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

// process reads a directory of /proc; false means that the process has ended.
func process(dir string) (Process, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, false
	}
	// PID (NAME) STATE PPID ..., and a name may hold anything.
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
