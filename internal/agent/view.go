package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/contain"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/watchdog"
)

// view is a view of the host in which an agent runs (package contain). Everything that is written there is discarded.
type view struct {
	children  *process.Children
	child     *process.Child // the agent
	user      bool           // it has its own user namespace
	layer     string         // the directory on which the layer is mounted
	namespace string         // the mount namespace, in the form of the link /proc/PID/ns/mnt
	files     []*os.File     // files that are kept open as long as the agent must live
}

// layerPrefix is the beginning of the names of directories on which agents mount layers.
const layerPrefix = "gangrun-layer-"

// makeLayer makes a directory on which a layer can be mounted. It is below the agent's own
// directory or, if own is empty, in the first directory for temporary files that can be used.
// The directory stays locked until the agent closes it.
func makeLayer(own string) (dir *os.File, err error) {
	dirs := []string{own}
	if own == "" {
		tempfiles.RemoveUnlocked(layerPrefix, os.Remove) // they are empty, because nothing is mounted on them
		dirs = append([]string{os.TempDir(), "/tmp"}, tempfiles.Fallbacks...)
	}
	var errs []error
	for _, in := range dirs {
		dir, err := tempfiles.LockedDir(in, layerPrefix)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// usualDirs returns the directories to which programs write even if the job does not name them. These are the
// directories for temporary files, and directories in environment variables such as HOME.
func usualDirs(env []string) []string {
	dirs := []string{"/tmp", "/var/tmp"}
	for _, v := range env {
		_, value, _ := strings.Cut(v, "=")
		if !filepath.IsAbs(value) || strings.Contains(value, ":") {
			continue
		}
		if info, err := os.Stat(value); err == nil && info.IsDir() {
			dirs = append(dirs, filepath.Clean(value))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// newView starts an agent in a view. The view has its own user namespace, unless this user is root
// and can make the other namespaces without one.
func (s *server) newView(ctx context.Context, gang, host string, env []string, request contain.Request) (*contained, error) {
	layer, err := makeLayer(s.link.dir)
	if err != nil {
		return nil, err
	}
	request.Layer, request.User = layer.Name(), os.Geteuid() != 0 || !contain.FirstNamespace()
	v, conn, err := s.startView(ctx, host, env, request)
	if errors.Is(err, unix.EPERM) && !request.User {
		request.User = true
		v, conn, err = s.startView(ctx, host, env, request)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(layer.Name()), layer.Close())
	}
	v.layer, v.user = layer.Name(), request.User
	v.files = append(v.files, layer)
	return connect(ctx, gang, host, v, conn)
}

// startView starts the process that makes the view and becomes the agent. It returns the connection
// to that agent.
func (s *server) startView(ctx context.Context, host string, env []string, request contain.Request) (*view, net.Conn, error) {
	argv, err := request.Args("gangrun", "agent", host, watchdog.Worker)
	if err != nil {
		return nil, nil, err
	}
	var toClose []*os.File // the agent has its own descriptors after it has been started
	defer func() {
		for _, f := range toClose {
			_ = f.Close()
		}
	}()
	ours, theirs, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, err
	}
	keep, kept, err := socketPair(unix.SOCK_SEQPACKET) // every agent expects this socket; it is for leases
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	alive, live, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close(), theirs.Close(), keep.Close(), kept.Close())
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close(), theirs.Close(), keep.Close(), kept.Close(), alive.Close(), live.Close())
	}
	toClose = append(toClose, ours, theirs, kept, alive, reportRead, reportWrite)
	v := &view{children: s.children, files: []*os.File{keep, live}}
	null, err := process.DevNull()
	if err != nil {
		return nil, nil, errors.Join(err, keep.Close(), live.Close())
	}
	toClose = append(toClose, null)
	attr := &syscall.ProcAttr{Env: env, Sys: contain.Attr(request.User)}
	attr.Sys.Setpgid, attr.Sys.Pdeathsig = true, syscall.SIGKILL
	for _, f := range []*os.File{null, null, os.Stderr, theirs, live, alive, kept, reportWrite} {
		attr.Files = append(attr.Files, f.Fd())
	}
	if v.child, err = s.children.Start("/proc/self/exe", argv, attr); err != nil {
		return nil, nil, errors.Join(noNamespaces(err), err, keep.Close(), live.Close())
	}
	_ = reportWrite.Close()
	if err := awaitView(ctx, reportRead); err != nil {
		v.end()
		return nil, nil, err
	}
	v.namespace, _ = os.Readlink(viewOf(v.child.PID))
	conn, err := net.FileConn(ours)
	if err != nil {
		v.end()
		return nil, nil, err
	}
	return v, conn, nil
}

// noNamespaces returns the reason why the kernel refuses namespaces to this user. See clone(2).
func noNamespaces(err error) error {
	why := contain.Error{Step: "make namespaces", Text: err.Error()}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		why.Text = "user namespaces are switched off or used up here (sysctl user.max_user_namespaces)"
	case errors.Is(err, unix.EPERM):
		why.Text = "this user may not make any here: look at the container's rules, and at sysctl kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
	}
	return &why
}

// awaitView waits until the agent has entered its view. If the agent cannot do that, awaitView returns the reason. from
// is the pipe through which the agent reports the reason. If there is no problem, the pipe is closed without data.
func awaitView(ctx context.Context, from *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = from.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	data, err := io.ReadAll(from)
	if err != nil {
		return &contain.Error{Step: "make a view of the host", Text: "it takes longer than " + containLimit.String()}
	}
	if len(data) == 0 {
		return nil
	}
	var why contain.Error
	if err := exact.Unmarshal(data, &why); err != nil {
		return err
	}
	return &why
}

// exited implements room.
func (v *view) exited() <-chan struct{} { return v.child.Exited }

// said implements room. The agent writes to the same standard error as this agent.
func (v *view) said() string { return "" }

// outOfMemory implements room. A view has no memory of its own.
func (v *view) outOfMemory() bool { return false }

// end implements room. The layer disappears with the processes.
func (v *view) end() {
	v.children.Signal(v.child, unix.SIGKILL)
	notify.Wait(v.child.Exited, process.KillLimit)
	for deadline := time.Now().Add(process.KillLimit); v.namespace != "" && time.Now().Before(deadline); time.Sleep(process.KillEvery) {
		if !v.killLeft() {
			break
		}
	}
	cgroup.Open(v.child.PID).Close() // if the agent was killed before it could remove its cgroup
	for _, f := range v.files {
		_ = f.Close()
	}
	if v.layer != "" {
		_ = os.Remove(v.layer)
	}
}

// killLeft kills the processes that a contained agent has left in its view. It reports whether there were any.
func (v *view) killLeft() (left bool) {
	for _, p := range process.Descendants(os.Getpid()) {
		if namespace, err := os.Readlink(viewOf(p.PID)); err == nil && namespace == v.namespace {
			left = true
			p.Signal(unix.SIGKILL)
		}
	}
	return left
}

func viewOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/ns/mnt" }
