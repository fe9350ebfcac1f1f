package testcontainerd

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/procfs"
)

// Shims returns the PIDs of the shims of this containerd.
func (d *Daemon) Shims() []int { return shims(d.dir) }

// Left returns everything that still exists of containers: shims, processes in containers,
// mounts of root directories, cgroups, and the containers that runc knows. If the containerd
// runs, Left also returns the containers and snapshots that it knows.
func (d *Daemon) Left() (left []string) {
	if d.cmd != nil {
		for _, what := range [][]string{{"containers", "ls", "-q"}, {"snapshots", "ls"}} {
			out, err := exec.Command("ctr", append([]string{"-a", d.Socket, "-n", "gangrun"}, what...)...).CombinedOutput()
			if err != nil {
				left = append(left, fmt.Sprintf("ctr: %v: %s", err, out))
			}
			for line := range strings.Lines(string(out)) {
				if what[0] == "containers" || strings.HasSuffix(strings.TrimSpace(line), "Active") {
					left = append(left, strings.TrimSpace(line))
				}
			}
		}
	}
	for _, pid := range slices.Concat(shims(d.dir), contained(d.dir)) {
		left = append(left, fmt.Sprintf("process %d: %q", pid, procfs.Args(pid)))
	}
	for _, path := range mounts(d.dir) {
		left = append(left, "mount at "+path)
	}
	return slices.Concat(left, cgroups(d.dir), runcStates(d.dir))
}

// shims returns the PIDs of the shims of the containerd of a directory.
func shims(dir string) []int {
	return slices.DeleteFunc(withArg(dir, socketName), func(pid int) bool {
		args := procfs.Args(pid)
		return len(args) == 0 || !strings.Contains(args[0], "containerd-shim")
	})
}

// withArg returns the PIDs of the processes that have a file of a directory as an argument.
func withArg(dir, name string) (pids []int) {
	for _, pid := range procfs.PIDs() {
		if slices.Contains(procfs.Args(pid), filepath.Join(dir, name)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// contained returns the PIDs of the processes whose root directory is a snapshot of the containerd of a
// directory.
func contained(dir string) (pids []int) {
	for _, pid := range procfs.PIDs() {
		info, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
		if err != nil {
			continue // it has ended
		}
		for lines := bufio.NewScanner(info); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) > 4 && fields[4] == "/" && strings.Contains(lines.Text(), dir+"/") {
				pids = append(pids, pid)
				break
			}
		}
		info.Close()
	}
	return pids
}

// mounts returns the paths below a directory at which something is mounted, the deepest first.
func mounts(dir string) (paths []string) {
	all, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(all)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			paths = append(paths, fields[1])
		}
	}
	slices.Sort(paths)
	slices.Reverse(paths)
	return paths
}

// What containerd logs when it starts a container: 1.6 logs the path of a directory, which ends in the
// container's namespace and ID, and 2.x a connection to the shim.
var (
	bundle     = regexp.MustCompile(`/io\.containerd\.runtime\.v2\.task/([\w.-]+/[\w.-]+)`)
	connecting = regexp.MustCompile(`"connecting to shim ([\w.-]+)" address="unix://([^"]+)" namespace=([\w.-]+)`)
)

// started returns the sockets of the shims of the containers that the log of the containerd of a directory
// names, by the containers' NAMESPACE/ID.
func started(dir string) (sockets map[string]string) {
	log, _ := os.ReadFile(filepath.Join(dir, logName))
	sockets = map[string]string{}
	for _, match := range bundle.FindAllStringSubmatch(string(log), -1) {
		sum := sha256.Sum256([]byte(filepath.Join(dir, socketName, match[1])))
		sockets[match[1]] = filepath.Join("/run/containerd/s", hex.EncodeToString(sum[:]))
	}
	for _, match := range connecting.FindAllStringSubmatch(string(log), -1) {
		sockets[match[3]+"/"+match[1]] = match[2]
	}
	return sockets
}

// cgroups returns the cgroups of the containers that the containerd of a directory has started.
func cgroups(dir string) (paths []string) {
	for id := range started(dir) {
		for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			found, _ := filepath.Glob(filepath.Join(pattern, id))
			paths = append(paths, found...)
		}
	}
	return paths
}

// runcStates returns what runc knows of the containers that the containerd of a directory has started. All
// containerds of a machine have them in one directory.
func runcStates(dir string) (paths []string) {
	for id := range started(dir) {
		found, _ := filepath.Glob(filepath.Join("/run/containerd/runc", id))
		paths = append(paths, found...)
	}
	return paths
}

// shimSockets returns the sockets of the shims that the containerd of a directory has started. A shim that
// is killed leaves its socket.
func shimSockets(dir string) []string { return slices.Collect(maps.Values(started(dir))) }
