package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/contain"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/watchdog"
	"github.com/gangrun/gangrun/internal/wire"
)

// contained is a second agent, below this one, that runs in a view of the host (package
// contain): whatever is written there is discarded. It runs one gang, and this agent forwards
// the requests and replies for it.
type contained struct {
	gang   string // RUN/ATTEMPT
	layer  string // the directory on which the layer is mounted in the view
	user   bool   // the agent has its own user namespace
	child  *process.Child
	view   string // the mount namespace, as the link /proc/PID/ns/mnt names it
	grpc   *grpc.ClientConn
	client wire.AgentClient
	files  []*os.File // kept open while the agent is to live
}

// containLimit bounds the time for making a view, which normally takes milliseconds.
const containLimit = 10 * time.Second

// Contain implements wire.AgentServer. If the host cannot contain a gang, the reply gives the
// reason, and there is no error.
func (s *server) Contain(ctx context.Context, r *wire.ContainRequest) (*wire.ContainReply, error) {
	host, env := s.settings.get()
	s.gangs.mu.Lock()
	busy := s.gangs.busy
	s.gangs.mu.Unlock()
	if busy {
		return nil, errBusy
	}
	s.retire()
	logs, err := s.logDir(r.Gang, string(r.LogDir))
	if err != nil {
		return nil, err
	}
	request := contain.Request{
		Room: layerSize() / int64(max(1, r.Sharing)), Through: []string{logs},
		Work: wire.Strings(r.Work), Needed: append(wire.Strings(r.Needed), usualDirs(env)...),
	}
	if len(r.Empty) > 0 {
		request.Empty = []string{string(r.Empty)}
	}
	ctx, cancel := context.WithTimeout(ctx, containLimit)
	defer cancel()
	c, err := s.newContained(ctx, r.Gang, host, env, request)
	var cannot *contain.Error
	if errors.As(err, &cannot) {
		return &wire.ContainReply{Reason: []byte(cannot.Error())}, nil
	}
	if err != nil && ctx.Err() == nil {
		return &wire.ContainReply{Reason: []byte("cannot start an agent for it: " + err.Error())}, nil
	}
	if err != nil {
		return nil, status.Error(codes.Aborted, err.Error())
	}
	s.gangs.mu.Lock()
	defer s.gangs.mu.Unlock()
	s.gangs.contained = c
	return &wire.ContainReply{Mixed: c.user && request.Mixed()}, nil
}

// layerPrefix begins the names of the directories on which agents mount layers.
const layerPrefix = "gangrun-layer-"

// layerTries is how often an agent makes its layer directory, if other agents remove it.
const layerTries = 100

// makeLayer makes a directory on which a layer can be mounted. It is below the agent's own
// directory or, if own is empty, in the first directory for temporary files that can be used.
// The directory stays locked until the agent closes it.
func makeLayer(own string) (dir *os.File, err error) {
	dirs := []string{own}
	if own == "" {
		removeDeadLayers()
		dirs = append([]string{os.TempDir(), "/tmp"}, tempfiles.Fallbacks...)
	}
	var errs []error
	for _, in := range dirs {
		dir, err := lockedLayer(in)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// lockedLayer makes a locked layer directory below another directory. Until it is locked, another
// agent may take it for that of a dead one and remove it; then it makes another.
func lockedLayer(in string) (*os.File, error) {
	for range layerTries {
		path, err := os.MkdirTemp(in, layerPrefix)
		if err != nil {
			return nil, err
		}
		dir, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_SH); err != nil {
			return nil, errors.Join(err, dir.Close())
		}
		if _, err := os.Lstat(path); err == nil {
			return dir, nil
		}
		_ = dir.Close()
	}
	return nil, fmt.Errorf("each directory that was made below %s was removed by another process", in)
}

// removeDeadLayers removes the layer directories of agents that were killed. They are empty, and
// nothing is mounted on them.
func removeDeadLayers() {
	for _, in := range append([]string{os.TempDir(), "/tmp"}, tempfiles.Fallbacks...) {
		dirs, _ := filepath.Glob(filepath.Join(in, layerPrefix+"*"))
		for _, path := range dirs {
			dir, err := os.Open(path)
			if err != nil {
				continue // somebody else's
			}
			if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
				_ = os.Remove(path)
			}
			_ = dir.Close()
		}
	}
}

// usualDirs returns the directories that programs write to even if the job does not name them:
// those for temporary files, and those in variables of the environment such as HOME.
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

// newContained starts the contained agent. It gets a user namespace unless this user is root and
// may make the other namespaces without one.
func (s *server) newContained(ctx context.Context, gang, host string, env []string, request contain.Request) (*contained, error) {
	layer, err := makeLayer(s.link.dir)
	if err != nil {
		return nil, err
	}
	request.Layer, request.User = layer.Name(), os.Geteuid() != 0 || !contain.FirstNamespace()
	c, err := s.startContained(ctx, host, env, request)
	if errors.Is(err, unix.EPERM) && !request.User {
		request.User = true
		c, err = s.startContained(ctx, host, env, request)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(layer.Name()), layer.Close())
	}
	c.gang, c.layer, c.user = gang, layer.Name(), request.User
	c.files = append(c.files, layer)
	if _, err := c.client.Hello(ctx, &wire.HelloRequest{Host: host}); err != nil {
		c.close(s.children)
		return nil, fmt.Errorf("a contained agent does not answer: %w", err)
	}
	return c, nil
}

// startContained starts the process that makes the view and becomes the agent.
func (s *server) startContained(ctx context.Context, host string, env []string, request contain.Request) (*contained, error) {
	argv, err := request.Args("gangrun", "agent", host, watchdog.Worker)
	if err != nil {
		return nil, err
	}
	var toClose []*os.File // the agent has its own descriptors once it has been started
	defer func() {
		for _, f := range toClose {
			_ = f.Close()
		}
	}()
	ours, theirs, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	keep, kept, err := socketPair(unix.SOCK_SEQPACKET) // for leases: every agent expects it, but this one has none
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	alive, live, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close(), keep.Close(), kept.Close())
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close(), keep.Close(), kept.Close(), alive.Close(), live.Close())
	}
	toClose = append(toClose, ours, theirs, kept, alive, reportRead, reportWrite)
	c := &contained{files: []*os.File{keep, live}}
	null, err := process.DevNull()
	if err != nil {
		return nil, errors.Join(err, keep.Close(), live.Close())
	}
	toClose = append(toClose, null)
	attr := &syscall.ProcAttr{Env: env, Sys: contain.Attr(request.User)}
	attr.Sys.Setpgid, attr.Sys.Pdeathsig = true, syscall.SIGKILL
	for _, f := range []*os.File{null, null, os.Stderr, theirs, live, alive, kept, reportWrite} {
		attr.Files = append(attr.Files, f.Fd())
	}
	if c.child, err = s.children.Start("/proc/self/exe", argv, attr); err != nil {
		return nil, errors.Join(noNamespaces(err), err, keep.Close(), live.Close())
	}
	_ = reportWrite.Close()
	if err := awaitView(ctx, reportRead); err != nil {
		c.end(s.children)
		return nil, err
	}
	c.view, _ = os.Readlink(viewOf(c.child.PID))
	if err := c.connect(ours); err != nil {
		c.end(s.children)
		return nil, err
	}
	return c, nil
}

// noNamespaces returns why the kernel refuses namespaces to this user. See clone(2).
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

// awaitView waits until the agent has entered its view, or returns why it could not. from is the
// pipe to which the agent reports that: it is closed without data if all is well.
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

// connect opens the connection to the contained agent.
func (c *contained) connect(file *os.File) error {
	conn, err := net.FileConn(file)
	if err != nil {
		return err
	}
	conns := make(chan net.Conn, 1)
	conns <- conn
	c.grpc, err = grpc.NewClient("passthrough:///contained",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case conn := <-conns:
				return conn, nil
			default:
				return nil, errors.New("the contained agent has ended")
			}
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	c.client = wire.NewAgentClient(c.grpc)
	return nil
}

// close ends the contained agent and every process in its view, and returns when they
// are gone. The layer goes with them.
func (c *contained) close(children *process.Children) {
	if c.grpc != nil {
		_ = c.grpc.Close() // the agent then ends its ranks and itself
		notify.Wait(c.child.Exited, endLimit)
	}
	c.end(children)
}

func (c *contained) end(children *process.Children) {
	children.Signal(c.child, unix.SIGKILL)
	notify.Wait(c.child.Exited, process.KillLimit)
	for deadline := time.Now().Add(process.KillLimit); c.view != "" && time.Now().Before(deadline); time.Sleep(process.KillEvery) {
		if !c.killLeft() {
			break
		}
	}
	cgroup.Open(c.child.PID).Close() // if the agent was killed before it could remove its cgroup
	for _, f := range c.files {
		_ = f.Close()
	}
	if c.layer != "" {
		_ = os.Remove(c.layer)
	}
}

// killLeft kills the processes that a contained agent has left in its view, and reports whether
// there were any.
func (c *contained) killLeft() (left bool) {
	for _, p := range process.Descendants(os.Getpid()) {
		if view, err := os.Readlink(viewOf(p.PID)); err == nil && view == c.view {
			left = true
			p.Signal(unix.SIGKILL)
		}
	}
	return left
}

func viewOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/ns/mnt" }

// socketPair returns the two ends of a socket; the second is for a child.
func socketPair(kind int) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}
