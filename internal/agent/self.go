package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/identity"
	"github.com/gangrun/gangrun/internal/agent/process"
)

// selfDir is the directory in which a gang that is on several machines finds
// gangrun by one path on all of them, as Open MPI needs it.
func selfDir(gang string) string {
	return filepath.Join(sharedDir, "gangrun-"+strings.ReplaceAll(gang, "/", "-"))
}

// owned is the name of the file in a selfDir that says whose it is.
func owned(agent int) string { return "agent-" + identity.AgentName(agent) }

// self returns a path of this program that holds no blank, exists as long as this
// process, stays the same when the file is replaced, and is the same on all
// machines of the gang.
func (o *openMPI) self() (string, error) {
	if !o.g.start.Spread {
		return fmt.Sprintf("/proc/%d/exe", os.Getpid()), nil
	}
	dir := selfDir(o.g.start.Gang)
	path := filepath.Join(dir, "gangrun")
	if o.found {
		return path, nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make a directory for Open MPI to find gangrun in: %w", err)
	}
	var info unix.Stat_t
	if err := unix.Lstat(dir, &info); err != nil || int(info.Uid) != os.Getuid() || info.Mode&unix.S_IFMT != unix.S_IFDIR || info.Mode&0o022 != 0 {
		return "", fmt.Errorf("%q, in which Open MPI is to find gangrun, is somebody else's", dir)
	}
	target := fmt.Sprintf("/proc/%d/exe", os.Getpid())
	err := errors.Join(os.WriteFile(filepath.Join(dir, owned(os.Getpid())), nil, 0o600), os.Symlink(target, path))
	if err != nil {
		return "", fmt.Errorf("make a link for Open MPI to find gangrun by: %w", err)
	}
	o.found = true
	return path, nil
}

// removeDeadSelfDirs removes what agents of this PID namespace have made for self that were
// killed together with their watchdogs.
func removeDeadSelfDirs() {
	files, _ := filepath.Glob(filepath.Join(sharedDir, "gangrun-*", "agent-*."+identity.PIDNamespace()))
	for _, file := range files {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(file), "agent-"), ".")
		pid, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		if _, alive := process.Read(pid); !alive {
			_ = os.RemoveAll(filepath.Dir(file))
		}
	}
}

// removeSelfDirs removes what an agent has made for self.
func removeSelfDirs(agent int) {
	files, _ := filepath.Glob(filepath.Join(sharedDir, "gangrun-*", owned(agent)))
	for _, file := range files {
		_ = os.RemoveAll(filepath.Dir(file))
	}
}
