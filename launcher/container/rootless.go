package container

import (
	"context"
	"os"
	"strings"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// ownedByUser reports whether the containerd with a socket runs in a user namespace of this user, who is not
// root.
func ownedByUser(socket os.FileInfo) bool {
	owner, ok := ownerOf(socket)
	return ok && owner.UID != 0 && int(owner.UID) == os.Geteuid()
}

// RootlessError reports that a rootless containerd cannot do something.
type RootlessError struct{ What string }

// Error says what the rootless containerd cannot do.
func (e *RootlessError) Error() string {
	return "a containerd of a user's own cannot " + e.What
}

// rootless adapts a container to a containerd in a user namespace. The container gets the host's
// /proc and /sys: the kernel allows new mounts of these only to a user namespace that owns the PID
// and network namespaces. If the container has no cgroup path, runc makes no cgroup for it.
func rootless(_ context.Context, _ oci.Client, _ *containers.Container, s *specs.Spec) error {
	for i, m := range s.Mounts {
		switch m.Destination {
		case "/proc":
			s.Mounts[i] = specs.Mount{Destination: "/proc", Type: "bind", Source: "/proc", Options: []string{"rbind", "nosuid", "noexec", "nodev"}}
		case "/sys":
			s.Mounts[i] = specs.Mount{Destination: "/sys", Type: "bind", Source: "/sys", Options: []string{"rbind", "nosuid", "noexec", "nodev", "ro"}}
		}
	}
	for i, m := range s.Mounts {
		if m.Type == "overlay" { // in a user namespace, overlayfs cannot have its usual attributes
			last := len(m.Options) - 1
			s.Mounts[i].Options = append(m.Options[:last:last], "userxattr")
		}
	}
	below := func(paths []string) (rest []string) {
		for _, path := range paths {
			if !strings.HasPrefix(path, "/proc/") {
				rest = append(rest, path)
			}
		}
		return rest
	}
	s.Linux.CgroupsPath = ""
	s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = below(s.Linux.MaskedPaths), below(s.Linux.ReadonlyPaths)
	return nil
}
