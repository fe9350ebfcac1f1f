// Package contain runs a program that sees the files of the host, but whose writes go into
// a layer that is discarded. It uses overlayfs in a mount namespace, and in a user
// namespace if the caller is not root. See mount_namespaces(7), user_namespaces(7) and the
// kernel's Documentation/filesystems/overlayfs.rst.
//
// The caller starts this same program as "gangrun contain REQUEST WORD ...", with the
// namespaces that Attr returns. That process builds the view of the host, enters it, and
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

// Request describes a view. Paths are absolute.
type Request struct {
	// Layer is an empty directory of the caller's on which the layer is mounted.
	Layer string `json:"layer"`
	// Room limits how many bytes of memory can be written.
	Room int64 `json:"room"`
	// Work are directories in which the program works. Needed are other paths that the program may use. If
	// the layer cannot cover the file system of a path in Work or Needed, that is an error. Any other
	// file system that the layer cannot cover becomes read-only.
	Work   []string `json:"work,omitempty"`
	Needed []string `json:"needed,omitempty"`
	// Empty are directories that the program sees as empty.
	Empty []string `json:"empty,omitempty"`
	// Through are directories of the caller's in which writes are kept.
	Through []string `json:"through,omitempty"`
	// User is true if the process is in its own user namespace.
	User bool `json:"user,omitempty"`
}

// ReportFD is a pipe in the process that builds the view. The process closes it without
// writing if it succeeds, and otherwise writes an Error in JSON.
const ReportFD = 7

// Error is the reason why a host cannot contain a program.
type Error struct {
	Step string `json:"step"`           // what was being done, as in "mount an overlay over"
	Path string `json:"path,omitempty"` // the path of the step
	Text string `json:"text"`           // the error of the system
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("cannot %s: %s", e.Step, e.Text)
	}
	return fmt.Sprintf("cannot %s %s: %s", e.Step, e.Path, e.Text)
}

// failed returns an Error for err. It returns nil if err is nil.
func failed(step, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Step: step, Path: path, Text: err.Error()}
}

// needed has the capabilities that the process needs until it has entered the view, if it is in a user namespace in
// which it is not root. See capabilities(7).
var needed = []uintptr{
	0,  // CAP_CHOWN
	1,  // CAP_DAC_OVERRIDE, for overlayfs's work directory
	2,  // CAP_DAC_READ_SEARCH
	3,  // CAP_FOWNER
	4,  // CAP_FSETID
	21, // CAP_SYS_ADMIN
	27, // CAP_MKNOD, for overlayfs's whiteouts
}

// Attr returns the namespaces in which the process is started. If user is true, they belong
// to a user namespace, in which only the caller's own IDs exist. System V shared memory is
// separate, too, unless it must be shared with the daemon of NVIDIA's MPS.
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

// FirstNamespace reports whether this process is in the initial user namespace. Root in another user namespace needs a
// further namespace, in which it owns the mounts.
func FirstNamespace() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295"
}

// Args returns the arguments of the process that builds the view and then becomes "program
// words...".
func (r Request) Args(program string, words ...string) ([]string, error) {
	data, err := exact.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append([]string{program, "contain", string(data)}, words...), nil
}

// mps returns the directories through which programs reach the daemon of NVIDIA's MPS. It returns nothing if there is
// no daemon here.
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
