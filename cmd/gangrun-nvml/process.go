//go:build cgo && linux

package main

import (
	"bytes"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// about returns the user of a process, or the number of who has no name here, and
// the name that it was started by. Both are empty where it is not to be seen, as
// from inside a container.
func about(pid int) (owner, name string) {
	dir := "/proc/" + strconv.Itoa(pid)
	if info, err := os.Stat(dir); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = strconv.FormatUint(uint64(stat.Uid), 10)
			if u, err := user.LookupId(owner); err == nil {
				owner = u.Username
			}
		}
	}
	if text, err := os.ReadFile(dir + "/cmdline"); err == nil {
		first, _, _ := bytes.Cut(text, []byte{0})
		name = string(first)
	}
	if name == "" { // it has no arguments, or has written over them
		if text, err := os.ReadFile(dir + "/comm"); err == nil {
			name = strings.TrimSuffix(string(text), "\n")
		}
	}
	return owner, strings.ToValidUTF8(name, "?")
}
