// Package contain runs a program in a view of the host in which it sees the same
// files as everybody else, and in which everything that it writes goes into a
// layer that is thrown away: overlayfs in a mount namespace of its own, and in a
// user namespace where the caller is not root. See mount_namespaces(7),
// user_namespaces(7) and the kernel's Documentation/filesystems/overlayfs.rst.
//
// The caller starts this same program as "gangrun contain REQUEST WORD ...", with
// the namespaces that Attr asks for. That process builds the view, enters it, and
// becomes "gangrun WORD ...".
package contain

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/exact"
)

// Request says what the view is to be like. Paths are absolute.
type Request struct {
	// Layer is an empty directory of the caller's, over which the layer is mounted.
	Layer string `json:"layer"`
	// Room bounds what can be written, in bytes of memory.
	Room int64 `json:"room"`
	// Work are directories that the program works in, and Needed are other paths that
	// it may use. A file system with one of them that cannot be covered is an error;
	// others become read-only.
	Work   []string `json:"work,omitempty"`
	Needed []string `json:"needed,omitempty"`
	// Empty are directories that the program is to find empty.
	Empty []string `json:"empty,omitempty"`
	// Through are directories of the caller's in which files are really written.
	Through []string `json:"through,omitempty"`
	// User says that the process is in a user namespace of its own.
	User bool `json:"user,omitempty"`
}

// ReportFD is a pipe in the process that builds the view. It is closed without a
// word once that has worked; else it carries the JSON of an Error.
const ReportFD = 7

// Error is why a host cannot contain a program.
type Error struct {
	Step string `json:"step"`           // what was being done, as in "mount an overlay over"
	Path string `json:"path,omitempty"` // on what
	Text string `json:"text"`           // the system's own word
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("cannot %s: %s", e.Step, e.Text)
	}
	return fmt.Sprintf("cannot %s %s: %s", e.Step, e.Path, e.Text)
}

// failed returns an Error, nil where err is nil.
func failed(step, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Step: step, Path: path, Text: err.Error()}
}

// Capabilities that the process needs until it has entered the view, in a user
// namespace where it is not root. See capabilities(7).
var needed = []uintptr{
	0,  // CAP_CHOWN
	1,  // CAP_DAC_OVERRIDE, for overlayfs's work directory
	2,  // CAP_DAC_READ_SEARCH
	3,  // CAP_FOWNER
	4,  // CAP_FSETID
	21, // CAP_SYS_ADMIN
	27, // CAP_MKNOD, for overlayfs's whiteouts
}

// Attr returns the namespaces that the process is to be started in. With user they
// belong to a user namespace, in which the caller has its own IDs and no others.
// System V shared memory is apart as well, unless it has to be shared with the
// daemon of NVIDIA's MPS.
func Attr(user bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if len(mps(os.Getenv)) == 0 {
		attr.Cloneflags |= syscall.CLONE_NEWIPC
	}
	if user {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = slices.Clone(needed)
	}
	return attr
}

// FirstNamespace reports whether this process is in the first user namespace of the
// system. Root of another one needs one more, in which he owns the mounts.
func FirstNamespace() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295"
}

// Args returns the arguments of the process that builds the view and then becomes
// this program with the given words.
func (r Request) Args(program string, words ...string) ([]string, error) {
	data, err := exact.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append([]string{program, "contain", string(data)}, words...), nil
}

// mps returns the directories through which programs reach the daemon of NVIDIA's
// MPS, if it has any here.
func mps(getenv func(string) string) []string {
	dir := getenv("CUDA_MPS_PIPE_DIRECTORY")
	if dir == "" {
		dir = "/tmp/nvidia-mps" // the documented default
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !strings.HasPrefix(dir, "/") {
		return nil
	}
	return []string{dir}
}
