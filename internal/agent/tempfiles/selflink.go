package tempfiles

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

// linkDir returns the directory of the link to this program. It has the same path on all machines of the gang.
func linkDir(gang string) string {
	return filepath.Join(SharedDir, "gangrun-"+strings.ReplaceAll(gang, "/", "-"))
}

// ownerFile returns the name of the file in a linkDir that says which agent has made the directory.
func ownerFile(agent int) string { return "agent-" + identity.AgentName(agent) }

// SelfPath returns a path of this program that has no blanks. The path is valid as long as this process lives,
// even if the file of the program is replaced.
func SelfPath() string { return fmt.Sprintf("/proc/%d/exe", os.Getpid()) }

// LinkSelf makes a link to this program, and returns its path. The path is the same on all machines of a gang.
func LinkSelf(gang string) (string, error) {
	dir := linkDir(gang)
	path := filepath.Join(dir, "gangrun")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make a directory for Open MPI to find gangrun in: %w", err)
	}
	var info unix.Stat_t
	if err := unix.Lstat(dir, &info); err != nil || int(info.Uid) != os.Getuid() || info.Mode&unix.S_IFMT != unix.S_IFDIR || info.Mode&0o022 != 0 {
		return "", fmt.Errorf("%q, in which Open MPI is to find gangrun, is somebody else's", dir)
	}
	err := errors.Join(os.WriteFile(filepath.Join(dir, ownerFile(os.Getpid())), nil, 0o600), os.Symlink(SelfPath(), path))
	if err != nil {
		return "", fmt.Errorf("make a link for Open MPI to find gangrun by: %w", err)
	}
	return path, nil
}

// RemoveLinks removes the links that an agent has made.
func RemoveLinks(agent int) {
	files, _ := filepath.Glob(filepath.Join(SharedDir, "gangrun-*", ownerFile(agent)))
	for _, file := range files {
		_ = os.RemoveAll(filepath.Dir(file))
	}
}

// removeDeadLinks removes the links of agents of this PID namespace that are gone.
func removeDeadLinks() {
	files, _ := filepath.Glob(filepath.Join(SharedDir, "gangrun-*", "agent-*."+identity.PIDNamespace()))
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
