//go:build cgo && linux

package main

import (
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/procfs"
)

// about returns the user of a process, or the number of who has no name here, and
// the name that it was started by. Both are empty where it is not to be seen, as
// from inside a container.
func about(pid int) (owner, name string) {
	if uid, ok := procfs.UID(pid); ok {
		owner = strconv.Itoa(uid)
		if u, err := user.LookupId(owner); err == nil {
			owner = u.Username
		}
	}
	if args := procfs.Args(pid); len(args) > 0 {
		name = args[0]
	}
	if name == "" { // it has no arguments, or has written over them
		if text, err := os.ReadFile(procfs.Path(pid, "comm")); err == nil {
			name = strings.TrimSuffix(string(text), "\n")
		}
	}
	return owner, strings.ToValidUTF8(name, "?")
}
