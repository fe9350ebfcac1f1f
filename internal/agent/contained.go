package agent

import (
	"context"
	"errors"
	"fmt"
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

// contained is a second agent, below this one, that lives in a view of the host in
// which nothing that is written lasts. It runs one gang, on which this agent
// passes on every request and reply.
type contained struct {
	gang   string // RUN/ATTEMPT
	layer  string // the directory over which the layer is mounted, in the view
	user   bool   // it is in a user namespace of its own
	child  *process.Child
	view   string // of the mount namespace, as /proc/PID/ns/mnt has it
	grpc   *grpc.ClientConn
	client wire.AgentClient
	files  []*os.File // open as long as the agent is to live
}

// containLimit bounds the making of a view: mounting takes milliseconds.
const containLimit = 10 * time.Second

// Contain implements wire.AgentServer. The reason why a host cannot contain a gang
// is no error.
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
		Room: layerRoom() / int64(max(1, r.Sharing)), Through: []string{logs},
		Work: wire.Strings(r.Work), Needed: append(wire.Strings(r.Needed), named(env)...),
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

// layerPrefix begins the names of the directories over which agents mount layers.
const layerPrefix = "gangrun-layer-"

// makeLayer makes a directory to mount a layer over: in the agent's own, else in the first
// directory for temporary files that can be used. It is locked as long as the agent keeps
// it open.
func makeLayer(own string) (dir *os.File, err error) {
	dirs := []string{own}
	if own == "" {
		removeDeadLayers()
		dirs = append([]string{os.TempDir(), "/tmp"}, tempfiles.Fallbacks...)
	}
	var errs []error
	for _, in := range dirs {
		path, err := os.MkdirTemp(in, layerPrefix)
		if err == nil {
			dir, err = os.Open(path)
		}
		if err == nil {
			return dir, unix.Flock(int(dir.Fd()), unix.LOCK_SH)
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// removeDeadLayers removes the directories of agents that were killed: nothing is in
// them, and nothing is mounted there any more.
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

// named returns the directories that programs write to without being told: those for
// temporary files, and those that variables of the environment name, as HOME does.
func named(env []string) []string {
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

// newContained starts the contained agent. Root needs no user namespace where he may
// have the others without.
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
	var shut []*os.File // once it has been started
	defer func() {
		for _, f := range shut {
			_ = f.Close()
		}
	}()
	ours, theirs, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	keep, kept, err := socketPair(unix.SOCK_SEQPACKET) // of leases, which it has none of
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	alive, live, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close(), keep.Close(), kept.Close())
	}
	told, report, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close(), keep.Close(), kept.Close(), alive.Close(), live.Close())
	}
	shut = append(shut, ours, theirs, kept, alive, told, report)
	c := &contained{files: []*os.File{keep, live}}
	null, err := process.DevNull()
	if err != nil {
		return nil, errors.Join(err, keep.Close(), live.Close())
	}
	shut = append(shut, null)
	attr := &syscall.ProcAttr{Env: env, Sys: contain.Attr(request.User)}
	attr.Sys.Setpgid, attr.Sys.Pdeathsig = true, syscall.SIGKILL
	for _, f := range []*os.File{null, null, os.Stderr, theirs, live, alive, kept, report} {
		attr.Files = append(attr.Files, f.Fd())
	}
	if c.child, err = s.children.Start("/proc/self/exe", argv, attr); err != nil {
		return nil, errors.Join(noNamespaces(err), err, keep.Close(), live.Close())
	}
	_ = report.Close()
	if err := heardReport(ctx, told); err != nil {
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

// noNamespaces says why the kernel makes no namespaces for this user. See clone(2).
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

// heardReport waits until the view has been entered, and returns why it was not.
func heardReport(ctx context.Context, from *os.File) error {
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
		_ = c.grpc.Close() // it ends by itself, with its ranks
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
	cgroup.Open(c.child.PID).Close() // which it removes itself unless it was killed
	for _, f := range c.files {
		_ = f.Close()
	}
	if c.layer != "" {
		_ = os.Remove(c.layer)
	}
}

// killLeft kills what has outlived a contained agent that was killed, and reports
// whether there was any.
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
