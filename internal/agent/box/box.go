// Package box starts an agent of gangrun in a container. The agent of the host forwards requests about the gang
// in the container to the agent there.
package box

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/container"
)

// Box is a container in which an agent runs.
type Box struct {
	*container.Container
	runtime *container.Runtime
	image   *container.Image
	scratch *scratch
}

// Paths in a container at which gangrun places its own files.
const (
	dirInside = "/.gangrun"
	program   = dirInside + "/gangrun"
	socket    = dirInside + "/agent"
)

// endLimit limits the time for removing a container.
const endLimit = 10 * time.Second

// Close kills every process of the container, and removes the container and its directories. If Close
// cannot remove the container in time, the next agent that starts a container on this host removes it.
func (b *Box) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_ = b.End(ctx)
	_ = b.runtime.Close()
	b.scratch.remove()
}

// Workdir returns the directory in which ranks start if the job names no directory.
func (b *Box) Workdir() string { return cmp.Or(b.image.Config.WorkingDir, "/") }

// Image returns the name of the image.
func (b *Box) Image() string { return b.image.Name }

// Entrypoint returns the words that come before the command of every rank.
func (b *Box) Entrypoint() []string { return b.image.Config.Entrypoint }

// New starts a container for a gang, and an agent in it. It returns the connection to that agent. sockets are
// the paths at which New looks for containerd's socket. logs is the directory for the output of the ranks. If
// New returns an error, the function Problem turns the error into an ImageFact for the user.
func New(ctx context.Context, sockets []string, gang, host, logs string, want job.Box) (_ *Box, _ net.Conn, err error) {
	runtime, err := container.Open(ctx, sockets...)
	if err != nil {
		return nil, nil, err
	}
	undo := []func(){func() { _ = runtime.Close() }}
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				f()
			}
		}
	}()
	removeDirs()
	_, _ = runtime.Sweep(ctx, false) // containers that could not be removed in time
	image, err := runtime.Find(ctx, want.Image)
	if err != nil {
		return nil, nil, err
	}
	if err := runtime.Unpack(ctx, image); err != nil {
		return nil, nil, err
	}
	dirs, err := newScratch()
	if err != nil {
		return nil, nil, err
	}
	undo = append(undo, dirs.remove)
	listener, err := dirs.listen()
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	user, err := userOf(want.Container, runtime.Rootless)
	if err != nil {
		return nil, nil, err
	}
	if runtime.Rootless && (want.Memory > 0 || want.CPUs > 0) {
		return nil, nil, &container.RootlessError{What: "limit memory and CPUs"}
	}
	mounts, err := dirs.mounts(want, logs)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	mounts = append(mounts, container.Mount{Source: dirs.own, Target: dirInside}, container.Mount{Source: self, Target: program})
	spec := container.Spec{
		ID: idOf(gang, host), Labels: labelsOf(gang, host), Image: image, ImageUser: want.User == job.ImageUser, User: user, Mounts: mounts,
		Args:       []string{program, "enter", socket, "agent", host},
		Env:        hostclock.Env(),
		OwnNetwork: want.Network == job.NetworkNone, ReadOnly: want.ReadOnly,
		Limits:  container.Limits{Shm: int64(want.ShmSize), Memory: int64(want.Memory), CPUs: float64(want.CPUs)},
		Devices: container.Devices{GPUs: want.GPUs, Kind: want.GPUKind},
		Log:     filepath.Join(dirs.own, "log"),
	}
	started, err := runtime.Start(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	b := &Box{Container: started, runtime: runtime, image: image, scratch: dirs}
	undo = []func(){b.Close}
	if logs != "" && os.Geteuid() == 0 && b.User.UID != 0 { // the agent in the container writes its logs there
		if err := os.Chown(logs, int(b.User.UID), int(b.User.GID)); err != nil {
			return nil, nil, err
		}
	}
	conn, err := accept(ctx, listener, b)
	if err != nil {
		return nil, nil, err
	}
	return b, conn, nil
}

// accept waits for the connection of the first process of a container.
func accept(ctx context.Context, listener *net.UnixListener, b *Box) (net.Conn, error) {
	done := make(chan struct{})
	defer close(done)
	go func() { // the goroutine ends with this function
		select {
		case <-b.Exited():
		case <-ctx.Done():
		case <-done:
		}
		_ = listener.SetDeadline(time.Unix(1, 0))
	}()
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return nil, fmt.Errorf("the first process of the container does not answer: %s", cmp.Or(b.Said(), err.Error()))
		}
		if peer, err := peerPID(conn); err == nil && peer == b.PID {
			return conn, nil
		}
		_ = conn.Close() // the connection is from another process of this host
	}
}

// peerPID returns the process at the other end of a connection.
func peerPID(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid, errors.Join(err, controlErr)
}

// idOf returns the ID of the container of a gang on a host. Simulated hosts share a containerd.
func idOf(gang, host string) string {
	sum := sha256.Sum256([]byte(gang + "\x00" + host))
	return "gangrun-" + hex.EncodeToString(sum[:10])
}

// Labels of containers.
const (
	labelRun  = "gangrun/run"
	labelGang = "gangrun/gang"
	labelHost = "gangrun/host"
)

func labelsOf(gang, host string) map[string]string {
	run, _, _ := strings.Cut(gang, "/")
	return map[string]string{labelRun: run, labelGang: gang, labelHost: host}
}

// userOf returns the user of the processes of a container. In a rootless container, root is the user of this process.
func userOf(c job.Container, rootless bool) (container.User, error) {
	if rootless && c.User == "" {
		return container.User{}, nil
	}
	if rootless {
		return container.User{}, &container.RootlessError{What: "have ranks run as another user"}
	}
	ids, named, err := c.IDs()
	if err != nil {
		return container.User{}, err
	}
	if named {
		return container.User{UID: ids[0], GID: ids[1]}, nil
	}
	u := container.User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	groups, err := os.Getgroups()
	for _, group := range groups {
		u.Groups = append(u.Groups, uint32(group))
	}
	return u, err
}
