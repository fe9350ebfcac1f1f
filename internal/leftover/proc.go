package leftover

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Mark returns the entry of the environment that marks the processes of a gang. The
// process that asks is their agent.
func Mark(gang string) string { return Env + "=" + gang + ":" + place("self") }

// place names the control groups of a process, but for one that an agent has made for
// its ranks.
func place(process string) string {
	sum := sha256.New()
	for line := range strings.Lines(string(readAll(process, "cgroup"))) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "0::") && strings.HasPrefix(filepath.Base(line), "gangrun.") {
			line = "0::" + filepath.Dir(strings.TrimPrefix(line, "0::"))
		}
		sum.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Read returns every process of this machine that can be seen.
func Read() Table {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read is what there is
	t := Table{}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err == nil {
			if p, ok := parseStat(readAll(name, "stat")); ok {
				t[p.PID] = p
			}
		}
	}
	return t
}

// Look reads the details of a process.
func Look(process int) (d Details) {
	pid := strconv.Itoa(process)
	var info syscall.Stat_t
	if syscall.Stat(filepath.Join("/proc", pid), &info) != nil || int(info.Uid) != os.Geteuid() {
		return d
	}
	d.Agent = isAgent(readAll(pid, "cmdline"))
	gang, where := marked(readAll(pid, "environ"))
	d.Gang = gang
	d.Moved = gang != "" && where != place(pid)
	return d
}

// readAll reads a file of a process; it has none once it is gone, or is another user's.
func readAll(pid, name string) []byte {
	data, _ := os.ReadFile(filepath.Join("/proc", pid, name))
	return data
}

// parseStat reads fields 1 to 4 and 22 of proc_pid_stat(5). The command in field 2 may
// hold any byte, so what counts begins behind its last parenthesis.
func parseStat(data []byte) (p Process, ok bool) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return p, false
	}
	fields := bytes.Fields(data[end+1:])
	if len(fields) < 20 {
		return p, false
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(data[:open])))
	parent, err2 := strconv.Atoi(string(fields[1]))
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return p, false
	}
	return Process{PID: pid, Parent: parent, Start: start, State: string(fields[0]), Name: string(data[open+1 : end])}, true
}

// isAgent reports whether a command line is that of an agent or a watchdog: PROGRAM
// agent HOST, and maybe one more word.
func isAgent(cmdline []byte) bool {
	words := bytes.Split(bytes.TrimSuffix(cmdline, []byte{0}), []byte{0})
	return len(words) >= 3 && len(words) <= 4 && string(words[1]) == "agent"
}

// marked finds a mark in an environment, and takes it apart.
func marked(environ []byte) (gang, where string) {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(Env+"=")); ok {
			text := string(value)
			i := strings.LastIndexByte(text, ':')
			if i < 0 {
				return "", ""
			}
			return text[:i], text[i+1:]
		}
	}
	return "", ""
}
