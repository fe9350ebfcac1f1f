package container

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/text"
)

// systemSockets are where containerd listens for the whole host: by itself, below Docker, and in k3s and
// RKE2.
var systemSockets = []string{"/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock"}

// Sockets returns the paths at which this process may find containerd's socket. If CONTAINERD_ADDRESS is set,
// it is the only path. Otherwise, the paths of this user's own rootless containerd come first, unless the
// user is root, and those of the host's containerd follow. getenv returns the value of an environment
// variable.
func Sockets(getenv func(name string) string) []string {
	if address := getenv("CONTAINERD_ADDRESS"); address != "" {
		return []string{strings.TrimPrefix(address, "unix://")}
	}
	if os.Geteuid() == 0 {
		return systemSockets
	}
	dir := getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))
	}
	return append([]string{ownSocket(dir), filepath.Join(dir, "containerd", "containerd.sock")}, systemSockets...)
}

// ownSocket returns the path of the socket of a containerd that containerd-rootless.sh has started. It is in
// a mount namespace of RootlessKit, which names a process in it.
func ownSocket(dir string) string {
	state := filepath.Join(dir, "containerd-rootless", "child_pid")
	pid, err := os.ReadFile(state)
	if err != nil {
		return state // there is none
	}
	return filepath.Join("/proc", strings.TrimSpace(string(pid)), "root", systemSockets[0])
}

// UnavailableError reports that containerd cannot be used here.
type UnavailableError struct {
	// If Missing is true, Sockets has all paths at which Open has looked for a socket. Otherwise it has only
	// the path that exists.
	Sockets   []string
	Missing   bool   // none of the paths exists
	Forbidden bool   // this user may not open the socket
	Group     string // the group that may open the socket; empty if none is known
	Err       error
}

// Error returns the sockets and what is wrong.
func (e *UnavailableError) Error() string {
	switch {
	case e.Missing:
		if len(e.Sockets) > 1 {
			return "there is no containerd here: none of " + text.And(e.Sockets) + " exists"
		}
		return "there is no containerd here: " + text.And(e.Sockets) + " does not exist"
	case e.Forbidden && e.Group != "":
		return fmt.Sprintf("this user may not open containerd's socket %s: it is for root and the group %s", e.Sockets[0], e.Group)
	case e.Forbidden:
		return fmt.Sprintf("this user may not open containerd's socket %s: it is for root", e.Sockets[0])
	}
	return fmt.Sprintf("containerd does not answer at %s: %v", e.Sockets[0], e.Err)
}

// Unwrap returns the error of the system.
func (e *UnavailableError) Unwrap() error { return e.Err }

// otherRuntimes are programs that run images without containerd.
var otherRuntimes = []string{"apptainer", "singularity", "enroot"}

// Others returns the names of programs on PATH that run images without containerd. gangrun does not use these
// programs.
func Others() (names []string) {
	for _, name := range otherRuntimes {
		if _, err := exec.LookPath(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}
