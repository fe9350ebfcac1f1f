package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/procfs"
)

// shim is a shim of containerd: a process that holds the processes of one container.
type shim struct {
	pid    int
	args   []string // "containerd-shim-runc-v2 -namespace NAMESPACE -id ID -address SOCKET"
	bundle string   // its working directory, which has the root directory of the container; "" if it cannot be seen
}

// endForgotten ends the shim of a container of which containerd no longer knows that it runs. A containerd that
// starts again waits some seconds for each shim. Then it forgets a shim that has not answered, and that shim
// stays for ever. The ID must be one that no other containerd on this host uses.
func endForgotten(ctx context.Context, id string) error {
	namespace, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, pid := range procfs.PIDs() {
		if s, ok := shimOf(pid, namespace, id); ok {
			all = errors.Join(all, s.end(ctx))
		}
	}
	return all
}

// shimOf returns the process pid if it is a shim of a container.
func shimOf(pid int, namespace, id string) (s shim, ok bool) {
	args := procfs.Args(pid)
	if len(args) == 0 || !strings.HasPrefix(filepath.Base(args[0]), "containerd-shim-") ||
		option(args, "-namespace") != namespace || option(args, "-id") != id || slices.Contains(args, "delete") {
		return shim{}, false
	}
	bundle, _ := os.Readlink(procfs.Path(pid, "cwd"))
	return shim{pid, args, bundle}, true
}

// option returns the value of an option in the arguments of a shim, or "" if it is not there.
func option(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// end kills a shim with the processes of its container, and removes what they leave. The shim's own command
// "delete" does that, which containerd runs for a shim that was killed.
func (s shim) end(ctx context.Context) error {
	handle, err := unix.PidfdOpen(s.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(handle)
	if args := procfs.Args(s.pid); !slices.Equal(args, s.args) { // another process has its PID now
		return nil
	}
	program, err := os.Readlink(procfs.Path(s.pid, "exe"))
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("containerd has forgotten its shim %d, which this user may not kill: %w", s.pid, err)
	}
	if _, statErr := os.Stat(s.bundle); err != nil || statErr != nil { // containerd has removed it
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	deleting := exec.CommandContext(ctx, program, append(slices.Clone(s.args[1:]), "-bundle", s.bundle, "delete")...)
	deleting.Dir = s.bundle
	if out, err := deleting.CombinedOutput(); err != nil {
		return fmt.Errorf("%s -id %s delete: %w: %s", program, option(s.args, "-id"), err, out)
	}
	return os.RemoveAll(s.bundle)
}

// deleteLimit bounds the time of a shim's command "delete".
const deleteLimit = 5 * time.Second
