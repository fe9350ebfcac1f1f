//go:build cgo && linux

package main

import (
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/topology/nvml"
)

// about returns the user of a process, and the name of its program. A user without a name is shown
// by number. Both are empty if this process cannot see the other one, for instance from inside a
// container.
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

// maxAncestors bounds how far back the origin of a process is followed.
const maxAncestors = 64

// origin says where a process comes from. It returns nil if that cannot be seen.
func origin(pid int) *nvml.Origin {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return nil
	}
	o := &nvml.Origin{Name: strings.ToValidUTF8(stat.Name, "?"), UID: -1, Ancestors: []int{}}
	if uid, ok := procfs.UID(pid); ok {
		o.UID = uid
	}
	for len(o.Ancestors) < maxAncestors && err == nil && stat.Parent > 0 {
		o.Ancestors = append(o.Ancestors, stat.Parent)
		stat, err = procfs.ReadStat(stat.Parent)
	}
	return o
}
