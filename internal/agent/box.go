package agent

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

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/launcher/container"
)

// box is a container in which an agent runs.
type box struct {
	*container.Container
	runtime *container.Runtime
	image   *container.Image
	scratch *scratch
}

// Where a container has what gangrun brings into it.
const (
	boxDir     = "/.gangrun"
	boxProgram = boxDir + "/gangrun"
	boxSocket  = boxDir + "/agent"
)

// exited implements room.
func (b *box) exited() <-chan struct{} { return b.Exited() }

// said implements room.
func (b *box) said() string { return b.Said() }

// boxEndLimit bounds the time for removing a container.
const boxEndLimit = 10 * time.Second

// end implements room. A container that cannot be removed in time is removed by the next agent on
// this host that starts a container.
func (b *box) end() {
	ctx, cancel := context.WithTimeout(context.Background(), boxEndLimit)
	defer cancel()
	_ = b.End(ctx)
	_ = b.runtime.Close()
	b.scratch.remove()
}

// workdir returns the directory in which ranks start for which the job names none.
func (b *box) workdir() string { return cmp.Or(b.image.Config.WorkingDir, "/") }

// newBox starts a container for a gang, and an agent in it. logs is the directory for the output of
// its ranks. An error is one of package container if containerd refuses the container.
func (s *server) newBox(ctx context.Context, gang, host, logs string, want job.Box) (_ *contained, err error) {
	runtime, err := container.Open(ctx, container.SocketOf(os.LookupEnv))
	if err != nil {
		return nil, err
	}
	undo := []func(){func() { _ = runtime.Close() }}
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				f()
			}
		}
	}()
	removeDead(boxPrefix, os.RemoveAll)
	removeDead(memoryPrefix, os.RemoveAll)
	_, _ = runtime.Sweep(ctx, labelAgent, staleBox) // what could not be removed in time
	image, err := runtime.Find(ctx, want.Image)
	if err != nil {
		return nil, err
	}
	if err := runtime.Unpack(ctx, image); err != nil {
		return nil, err
	}
	dirs, err := newScratch()
	if err != nil {
		return nil, err
	}
	undo = append(undo, dirs.remove)
	listener, err := dirs.listen()
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	user, err := boxUser(want.Container)
	if err != nil {
		return nil, err
	}
	mounts, err := dirs.mounts(want, logs)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, container.Mount{Source: dirs.own, Target: boxDir}, container.Mount{Source: self, Target: boxProgram})
	spec := container.Spec{
		ID: boxID(gang, host), Labels: boxLabels(gang, host), Image: image, ImageUser: want.User == job.ImageUser, User: user, Mounts: mounts,
		Args:       []string{boxProgram, "enter", boxSocket, "agent", host},
		OwnNetwork: want.Network == job.NetworkNone, ReadOnly: want.ReadOnly,
		Limits:  container.Limits{Shm: int64(want.ShmSize), Memory: int64(want.Memory), CPUs: float64(want.CPUs)},
		Devices: container.Devices{GPUs: want.GPUs, Kind: want.GPUKind, RDMA: len(want.GPUs) > 0 || rdma()},
		Log:     filepath.Join(dirs.own, "log"),
	}
	started, err := runtime.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	b := &box{Container: started, runtime: runtime, image: image, scratch: dirs}
	undo = []func(){b.end}
	if logs != "" && os.Geteuid() == 0 && b.User.UID != 0 { // the agent in the container writes there
		if err := os.Chown(logs, int(b.User.UID), int(b.User.GID)); err != nil {
			return nil, err
		}
	}
	conn, err := acceptBox(ctx, listener, b)
	if err != nil {
		return nil, err
	}
	undo = nil // from here, connect ends it
	return connect(ctx, gang, host, b, conn)
}

// acceptBox waits for the connection of the first process of a container.
func acceptBox(ctx context.Context, listener *net.UnixListener, b *box) (net.Conn, error) {
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with this function
		select {
		case <-b.exited():
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
		_ = conn.Close() // another process of this host
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

// boxID returns the ID of the container of a gang on a host. Simulated hosts share a containerd.
func boxID(gang, host string) string {
	sum := sha256.Sum256([]byte(gang + "\x00" + host))
	return "gangrun-" + hex.EncodeToString(sum[:10])
}

// Labels of containers.
const (
	labelRun   = "gangrun/run"
	labelGang  = "gangrun/gang"
	labelHost  = "gangrun/host"
	labelAgent = "gangrun/agent" // the process that has started it: see processID
)

func boxLabels(gang, host string) map[string]string {
	run, _, _ := strings.Cut(gang, "/")
	return map[string]string{labelRun: run, labelGang: gang, labelHost: host, labelAgent: processID(os.Getpid())}
}

// boxUser returns the user of the processes of a container.
func boxUser(c job.Container) (container.User, error) {
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

// rdma reports whether this host has InfiniBand or RoCE devices.
func rdma() bool {
	found, _ := filepath.Glob("/dev/infiniband/uverbs*")
	return len(found) > 0
}

// processID identifies a process of this host: its PID namespace, PID and start.
func processID(pid int) string {
	stat, err := procfs.ReadStat(pid)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", procfs.Namespace(os.Getpid(), "pid"), pid, stat.Start)
}

// endDeadBoxes removes the containers of agents that were killed, with their directories.
func endDeadBoxes() {
	if removeDead(boxPrefix, os.RemoveAll)+removeDead(memoryPrefix, os.RemoveAll) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), boxEndLimit)
	defer cancel()
	runtime, err := container.Open(ctx, container.SocketOf(os.LookupEnv))
	if err != nil {
		return // the next agent here tries again if it finds other directories
	}
	defer runtime.Close()
	_, _ = runtime.Sweep(ctx, labelAgent, staleBox)
}

// staleBox reports whether the agent that has started a container is gone. Agents in other PID
// namespaces are not seen from here.
func staleBox(labels map[string]string) bool {
	id := labels[labelAgent]
	var namespace string
	var pid int
	if n, err := fmt.Sscan(id, &namespace, &pid); n != 2 || err != nil || namespace != procfs.Namespace(os.Getpid(), "pid") {
		return false
	}
	return processID(pid) != id
}
