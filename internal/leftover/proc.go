package leftover

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/internal/watchdog"
)

// Read returns the processes of this machine that have a tag, and their ancestors, and the
// ancestors of the process self. It leaves out processes that this process cannot see.
func Read(self int) Table {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // after an error, names has what could be read
	t := Table{}
	t.addAbove(self)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && tagOf(pid) != 0 {
			t.addAbove(pid)
		}
	}
	return t
}

// addAbove adds a process and its ancestors.
func (t Table) addAbove(pid int) {
	for pid > 0 {
		if _, ok := t[pid]; ok {
			return
		}
		p, ok := read(pid)
		if !ok {
			return
		}
		t[pid] = p
		pid = p.Parent
	}
}

// read reads one process.
func read(process int) (p Process, ok bool) {
	pid := strconv.Itoa(process)
	if p, ok = stat(pid); !ok {
		return p, false
	}
	p.Tag = tagOf(process)
	var info syscall.Stat_t
	p.Mine = syscall.Stat(filepath.Join("/proc", pid), &info) == nil && int(info.Uid) == os.Geteuid()
	p.Agent = isAgent(p.Name, readAll(pid, "cmdline"))
	if p.Tag != 0 {
		p.Gang = gangIn(readAll(pid, "environ"), p.Tag)
	}
	return p, true
}

// readAll reads a file of a process. It returns nil if the process is gone or belongs to another user.
func readAll(pid, name string) []byte {
	data, _ := os.ReadFile(filepath.Join("/proc", pid, name))
	return data
}

// stat reads /proc/PID/stat.
func stat(pid string) (p Process, ok bool) {
	s, err := procfs.ParseStat(readAll(pid, "stat"))
	return Process{PID: s.PID, Parent: s.Parent, Start: s.Start, State: string(s.State), Name: s.Name}, err == nil
}

// isAgent reports whether a process is an agent or a watchdog, by its name and its command line. The command line is
// "PROGRAM agent HOST", followed by another word unless the process is the outer watchdog.
func isAgent(name string, cmdline []byte) bool {
	words := strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
	if len(words) < 3 || words[1] != "agent" {
		return false
	}
	switch len(words) {
	case 3:
		return name == watchdog.Name
	case 4:
		return words[3] == watchdog.Inner || words[3] == watchdog.Worker
	}
	return false
}

// gangIn returns the gang named in an environment, if that gang has the tag.
func gangIn(environ []byte, tag Tag) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if run, ok := bytes.CutPrefix(entry, []byte("GANGRUN_RUN=")); ok && tag.Of(string(run)) {
			return string(run) + "/" + strconv.Itoa(tag.attempt())
		}
	}
	return ""
}
