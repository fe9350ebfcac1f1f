package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Spec describes a container. Paths are absolute.
type Spec struct {
	// ID must be unique on this host. Other processes can find the container later by its Labels. Labels must not be
	// nil.
	ID     string
	Labels map[string]string
	Image  *Image
	Args   []string // the command of the first process
	Env    []string // variables of the first process, in addition to those of the image
	User   User
	// If ImageUser is true, the container's processes run as the user whom the image names, and User has no effect.
	// The calling process must then be root.
	ImageUser bool
	Mounts    []Mount
	// If OwnNetwork is true, the container does not use the network of the host, but a network that has only a
	// loopback interface.
	OwnNetwork bool
	// ReadOnly makes the root directory read-only. /tmp and /var/tmp are then in memory and can be written.
	ReadOnly bool
	Limits   Limits
	Devices  Devices
	// Log is the path of a file that gets what the first process writes to its standard output and standard
	// error.
	Log      string
	rootless bool // see Runtime.Rootless
}

// User has the IDs under which the processes of a container run.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// Limits has the limits on what a container may use. 0 means no limit, except in Shm.
type Limits struct {
	Shm    int64   // bytes of /dev/shm; 0 means half of the memory
	Memory int64   // bytes
	CPUs   float64 // as in 1.5
}

// Mount makes a directory or file of the host visible in a container.
type Mount struct {
	Source, Target string
	Write          bool
	// Layer, if not empty, is an empty directory on a file system in memory. What the container
	// writes below Target then goes to Layer, and Source does not change.
	Layer string
}

// Directories that a layer has.
const (
	upperDir = "upper"
	workDir  = "work"
	lowerDir = "lower" // a symbolic link: overlayfs's options would need escapes for some names
)

// oci returns the mount in the form of the OCI.
func (m Mount) oci() (specs.Mount, error) {
	if m.Layer == "" {
		options := []string{"rbind", "rprivate", "rro"}
		if m.Write {
			options[2] = "rw"
		}
		return specs.Mount{Destination: m.Target, Type: "bind", Source: m.Source, Options: options}, nil
	}
	info, err := os.Stat(m.Source)
	if err != nil {
		return specs.Mount{}, err
	}
	if !info.IsDir() {
		return specs.Mount{}, fmt.Errorf("%s is not a directory: only directories can have a layer", m.Source)
	}
	upper, work, lower := m.Layer+"/"+upperDir, m.Layer+"/"+workDir, m.Layer+"/"+lowerDir
	if err := errors.Join(os.Mkdir(upper, 0o700), os.Mkdir(work, 0o700), os.Symlink(m.Source, lower)); err != nil {
		return specs.Mount{}, err
	}
	if err := mirror(info, upper); err != nil {
		return specs.Mount{}, err
	}
	options := []string{"lowerdir=" + lower, "upperdir=" + upper, "workdir=" + work, "redirect_dir=on"}
	return specs.Mount{Destination: m.Target, Type: "overlay", Source: "gangrun", Options: options}, nil
}

// mirror gives a directory the mode and, if this user may, the owner of another one: those of the
// upper directory are what processes see.
func mirror(of os.FileInfo, dir string) error {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return err
	}
	if owner, ok := ownerOf(of); ok && (owner.UID != stat.Uid || owner.GID != stat.Gid) {
		_ = os.Chown(dir, int(owner.UID), int(owner.GID)) // only root may
	}
	return os.Chmod(dir, of.Mode().Perm()|of.Mode()&(os.ModeSticky|os.ModeSetgid))
}

// options returns how the container differs from containerd's default: see Spec.
func (s Spec) options() ([]oci.SpecOpts, error) {
	env := append([]string{defaultPath}, s.Image.Config.Env...)
	// The container's own cgroup, which counts its OOM kills.
	mounts := []specs.Mount{{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro", "nosuid", "noexec", "nodev"}}}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if s.ReadOnly {
			mounts = append(mounts, specs.Mount{Destination: dir, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=1777"}})
		}
	}
	for _, m := range s.Mounts {
		mount, err := m.oci()
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, mount)
	}
	options := []oci.SpecOpts{
		oci.WithDefaultPathEnv, oci.WithEnv(env), oci.WithEnv(s.Env),
		oci.WithProcessArgs(s.Args...), oci.WithProcessCwd(cmp.Or(s.Image.Config.WorkingDir, "/")), asUser(s.User),
		oci.WithHostNamespace(specs.PIDNamespace), oci.WithHostNamespace(specs.UTSNamespace),
		oci.WithoutRunMount, oci.WithDevShmSize(max(1, s.shm()>>10)), oci.WithMounts(mounts), rlimits,
	}
	if s.rootless {
		options = append(options, rootless)
	}
	if s.ImageUser { // root, if the image names nobody
		options = append(options, asUser(User{}))
	}
	if s.ImageUser && s.Image.Config.User != "" {
		options = append(options, named(s.Image.Config.User))
	}
	if !s.OwnNetwork {
		options = append(options, oci.WithHostNamespace(specs.NetworkNamespace), oci.WithHostHostsFile, oci.WithHostResolvconf)
	}
	if s.ReadOnly {
		options = append(options, oci.WithRootFSReadonly())
	}
	if s.Limits.Memory > 0 {
		options = append(options, oci.WithMemoryLimit(uint64(s.Limits.Memory)))
	}
	if s.Limits.CPUs > 0 {
		options = append(options, oci.WithCPUCFS(int64(s.Limits.CPUs*cfsPeriod), cfsPeriod))
	}
	// The profile depends on the capabilities. What devices add must not be replaced later.
	options = append(options, seccomp.WithDefaultProfile(), s.Devices.option())
	return options, nil
}

// defaultPath is PATH where an image sets none, as in Docker.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// cfsPeriod is the period of the CPU limit in microseconds: the kernel's default.
const cfsPeriod = 100_000

// shm returns the size of /dev/shm in bytes. NCCL, MPI and PyTorch's data loaders need more than the
// 64 MiB that containers usually get.
func (s Spec) shm() int64 {
	if s.Limits.Shm > 0 {
		return s.Limits.Shm
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 64 << 20
	}
	return int64(info.Totalram) * int64(info.Unit) / 2
}

// asUser sets the user, without a look into the image.
func asUser(u User) oci.SpecOpts {
	return func(_ context.Context, _ oci.Client, _ *containers.Container, s *specs.Spec) error {
		s.Process.User = specs.User{UID: u.UID, GID: u.GID, AdditionalGids: u.Groups}
		return nil
	}
}

// UserError reports that a container must run as a user or group that its image does not have.
type UserError struct{ Name string }

// Error returns the name.
func (e *UserError) Error() string {
	return fmt.Sprintf("the image is to run as the user %q, but its /etc/passwd or /etc/group has no such name", e.Name)
}

// named sets the user by a name or number of the image, as in "app" or "1000:users".
func named(user string) oci.SpecOpts {
	return func(ctx context.Context, c oci.Client, container *containers.Container, s *specs.Spec) error {
		err := oci.WithUser(user)(ctx, c, container, s)
		if errors.Is(err, oci.ErrNoUsersFound) || errors.Is(err, oci.ErrNoGroupsFound) || errors.Is(err, fs.ErrNotExist) {
			return &UserError{user}
		}
		return err
	}
}

// limited are the limits of this process that a container inherits. RDMA needs locked memory, and a
// rank's data loaders need files.
var limited = map[string]int{
	"RLIMIT_NOFILE": unix.RLIMIT_NOFILE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
	"RLIMIT_STACK": unix.RLIMIT_STACK, "RLIMIT_CORE": unix.RLIMIT_CORE,
}

// rlimits sets the limits of the container to those of this process.
func rlimits(_ context.Context, _ oci.Client, _ *containers.Container, s *specs.Spec) error {
	s.Process.Rlimits = nil
	for name, number := range limited {
		var limit unix.Rlimit
		if err := unix.Getrlimit(number, &limit); err != nil {
			return err
		}
		s.Process.Rlimits = append(s.Process.Rlimits, specs.POSIXRlimit{Type: name, Soft: limit.Cur, Hard: limit.Max})
	}
	return nil
}
