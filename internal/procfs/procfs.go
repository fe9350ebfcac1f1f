// Package procfs reads files of /proc. See proc(5).
package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Stat is what /proc/PID/stat says of a process.
type Stat struct {
	PID     int
	Name    string // the name of its main thread; the kernel keeps only 15 bytes
	State   byte   // a letter, see proc_pid_stat(5)
	Parent  int
	Faults  uint64 // page faults, minor and major, also of children that it has waited for
	User    uint64 // clock ticks that it has spent in user mode
	System  uint64 // clock ticks that it has spent in the kernel
	Waited  uint64 // clock ticks of the children that it has waited for
	RSS     int64  // resident memory in pages
	Threads int    // that have not ended; 1 or less if the process has ended
	Start   uint64 // clock ticks from boot to its start; with PID, this identifies the process
}

// Ended reports whether the process has ended, and its parent has not waited for it yet. A process with other threads
// that still run has not ended, even if its main thread has.
func (s Stat) Ended() bool { return (s.State == 'Z' || s.State == 'X') && s.Threads <= 1 }

// ReadStat reads /proc/PID/stat. The error is fs.ErrNotExist or syscall.ESRCH if there is
// no such process.
func ReadStat(pid int) (Stat, error) {
	data, err := os.ReadFile(Path(pid, "stat"))
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(data)
}

// ParseStat reads the content of /proc/PID/stat. The second field is the name in
// parentheses and may hold any byte, so the fields are counted from the last parenthesis.
func ParseStat(data []byte) (Stat, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return Stat{}, fmt.Errorf("no name in parentheses in %q", data)
	}
	s := Stat{Name: string(data[open+1 : end])}
	fields := strings.Fields(string(data[end+1:])) // the first is field 3
	if len(fields) < 22 {
		return Stat{}, fmt.Errorf("too few fields in %q", data)
	}
	s.State = fields[0][0]
	var err error
	number := func(text string) (n uint64) {
		if err == nil {
			n, err = strconv.ParseUint(text, 10, 64)
		}
		return n
	}
	for _, field := range fields[7:11] {
		s.Faults += number(field)
	}
	s.User, s.System, s.Waited = number(fields[11]), number(fields[12]), number(fields[13])+number(fields[14])
	s.Start, s.RSS = number(fields[19]), int64(number(fields[21]))
	s.Threads = int(number(fields[17]))
	if err == nil {
		s.PID, err = strconv.Atoi(string(bytes.TrimSpace(data[:open])))
	}
	if err == nil {
		s.Parent, err = strconv.Atoi(fields[1])
	}
	if err != nil {
		return Stat{}, fmt.Errorf("read %q: %w", data, err)
	}
	return s, nil
}

// Path returns the path of a file of a process.
func Path(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// PIDs returns the processes that /proc lists, or none if it cannot be read.
func PIDs() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error is still listed
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Children returns the children of all threads of a process. There are none on a kernel
// without CONFIG_PROC_CHILDREN.
func Children(pid int) (pids []int) {
	dir, err := os.Open(Path(pid, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	threads, _ := dir.Readdirnames(-1) // what was read before an error still counts
	for _, thread := range threads {
		data, _ := os.ReadFile(filepath.Join(dir.Name(), thread, "children")) // a thread that has just ended has none
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// Args returns the command line of a process: nil if it cannot be read, or if the process
// has ended or is a thread of the kernel.
func Args(pid int) []string {
	data, err := os.ReadFile(Path(pid, "cmdline"))
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

// UID returns the effective user of a process. ok is false if there is no such process.
func UID(pid int) (uid int, ok bool) {
	var info syscall.Stat_t
	if syscall.Stat(Path(pid, ""), &info) != nil {
		return 0, false
	}
	return int(info.Uid), true
}

// Field returns a value from a file whose lines have the form "KEY: VALUE", such as
// /proc/PID/status and /proc/meminfo.
func Field(data []byte, key string) (value string, ok bool) {
	for line := range strings.Lines(string(data)) {
		if name, value, found := strings.Cut(line, ":"); found && name == key {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// Namespace returns the identity of a namespace of a process, as in "pid:[4026531836]", or ""
// if it cannot be read. kind is the name of a file in /proc/PID/ns, such as "pid".
func Namespace(pid int, kind string) string {
	link, _ := os.Readlink(Path(pid, "ns/"+kind))
	return link
}

// BootID returns the random ID that the kernel made when the machine was booted, or "" if it
// cannot be read.
func BootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
