// Package container runs the processes of a job in containers, through the containerd of this
// host. It knows images, containers and their devices; it knows nothing of gangs, ranks and
// agents.
//
// A container shares the host's network, process IDs and host name, unless its Spec says otherwise.
// It has its own root directory, /dev, /dev/shm and System V shared memory.
package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"
)

// Namespace is the namespace of containerd that has the images which gangrun has imported.
const Namespace = "gangrun"

// searched are the namespaces in which images are looked for, in this order: gangrun's own, that
// of ctr and nerdctl, that of Kubernetes, and that of Docker.
var searched = []string{Namespace, "default", "k8s.io", "moby"}

// defaultSocket is where containerd listens unless it is told otherwise.
const defaultSocket = "/run/containerd/containerd.sock"

// answerLimit bounds how long containerd may take to answer the first request.
const answerLimit = 5 * time.Second

// Runtime is the containerd of this host.
type Runtime struct {
	client  *client.Client
	Socket  string // at which it listens
	Version string // as in "1.6.20"
	// Owner is the process that is to remove the containers which are started: this one.
	Owner string
}

// UnavailableError reports that containerd cannot be used here.
type UnavailableError struct {
	Socket    string
	Missing   bool   // nothing is at the path of the socket
	Forbidden bool   // this user may not open it
	Group     string // that may open it; empty if none is known
	Err       error
}

// Error returns the socket and what is wrong.
func (e *UnavailableError) Error() string {
	switch {
	case e.Missing:
		return "there is no containerd here: " + e.Socket + " does not exist"
	case e.Forbidden && e.Group != "":
		return fmt.Sprintf("this user may not open containerd's socket %s: it is for root and the group %s", e.Socket, e.Group)
	case e.Forbidden:
		return fmt.Sprintf("this user may not open containerd's socket %s: it is for root", e.Socket)
	}
	return fmt.Sprintf("containerd does not answer at %s: %v", e.Socket, e.Err)
}

// Unwrap returns the error of the system.
func (e *UnavailableError) Unwrap() error { return e.Err }

// SocketOf returns the path of containerd's socket: that of CONTAINERD_ADDRESS, of a rootless
// containerd of this user, or the default. getenv returns a variable of the environment.
func SocketOf(getenv func(name string) string) string {
	if address := getenv("CONTAINERD_ADDRESS"); address != "" {
		return strings.TrimPrefix(address, "unix://")
	}
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" && os.Geteuid() != 0 {
		if socket := rootless(dir); socket != "" {
			return socket
		}
	}
	return defaultSocket
}

// rootless returns the socket of the user's own containerd, empty if there is none. Its
// containerd runs in a namespace of RootlessKit, which names a process in it: see
// containerd-rootless.sh of nerdctl.
func rootless(dir string) string {
	pid, err := os.ReadFile(filepath.Join(dir, "containerd-rootless", "child_pid"))
	if err != nil {
		return ""
	}
	return filepath.Join("/proc", strings.TrimSpace(string(pid)), "root", defaultSocket)
}

// Open connects to the containerd at a socket. An error is an *UnavailableError.
func Open(ctx context.Context, socket string) (*Runtime, error) {
	problem := UnavailableError{Socket: socket}
	info, err := os.Stat(socket)
	if err == nil {
		err = unix.Access(socket, unix.R_OK|unix.W_OK)
	}
	if err != nil {
		problem.Err = err
		problem.Missing, problem.Forbidden = errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission)
		if info != nil {
			problem.Group = groupOf(info)
		}
		return nil, &problem
	}
	c, err := client.New(socket, client.WithDefaultNamespace(Namespace), client.WithTimeout(answerLimit))
	if err != nil {
		problem.Err = err
		return nil, &problem
	}
	asking, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	version, err := c.Version(asking) // New does not connect
	if err != nil {
		problem.Err = errors.Join(err, c.Close())
		return nil, &problem
	}
	return &Runtime{client: c, Socket: socket, Version: strings.TrimPrefix(version.Version, "v"), Owner: Owner(os.Getpid())}, nil
}

// Close closes the connection. Containers go on.
func (r *Runtime) Close() error { return r.client.Close() }

// in returns a context for requests about one namespace of containerd.
func in(ctx context.Context, namespace string) context.Context {
	return namespaces.WithNamespace(ctx, namespace)
}
