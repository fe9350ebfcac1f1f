package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(proc(pid, "task/*/children"))
	for _, list := range lists {
		data, _ := os.ReadFile(list) // it may have ended
		for _, field := range bytes.Fields(data) {
			if n, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, n)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// stat returns fields of /proc/PID/stat from the third one on, which is a
// process's state; nil when it is gone.
func stat(pid int) []string {
	data, _ := os.ReadFile(proc(pid, "stat"))
	if i := bytes.LastIndexByte(data, ')'); i >= 0 {
		return strings.Fields(string(data[i+1:]))
	}
	return nil
}

// begun returns when a process began, as the kernel counts it, which tells it from
// another one with its PID; "" when it is gone.
func begun(pid int) string {
	if fields := stat(pid); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// groups returns the process group and the session of a process.
func groups(pid int) (group, session int) {
	if fields := stat(pid); len(fields) > 3 {
		group, _ = strconv.Atoi(fields[2])
		session, _ = strconv.Atoi(fields[3])
	}
	return group, session
}

func parent(pid int) (ppid int) {
	if fields := stat(pid); len(fields) > 1 {
		ppid, _ = strconv.Atoi(fields[1])
	}
	return ppid
}
