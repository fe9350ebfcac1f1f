// Package container runs the processes of a job in containers, through the containerd of this
// host. It deals with images, containers and their devices, not with gangs, ranks or agents.
//
// A container shares the host's network, process IDs and host name, unless its Spec says otherwise.
// It has its own root directory, /dev, /dev/shm and System V shared memory.
package container

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"
)

// Namespace is the namespace of containerd in which gangrun stores images.
const Namespace = "gangrun"

// searched are the namespaces in which images are looked for, in this order: gangrun's own, that
// of ctr and nerdctl, that of Kubernetes, and that of Docker.
var searched = []string{Namespace, "default", "k8s.io", "moby"}

// answerLimit bounds how long containerd may take to answer the first request.
const answerLimit = 5 * time.Second

// Runtime is the containerd of this host.
type Runtime struct {
	client  *client.Client
	Socket  string // the path of its socket
	Version string // as in "1.6.20"
	// Owner identifies the process that has to remove the containers which this Runtime starts (see the
	// function Owner). Open sets it to the Owner of this process.
	Owner string
	// Rootless is true if containerd is rootless and belongs to this user. The user root in its containers is
	// then this user on the host.
	Rootless bool
}

// Open connects to containerd. sockets has paths of sockets. Open uses the first path that exists. The error is
// an *UnavailableError.
func Open(ctx context.Context, sockets ...string) (*Runtime, error) {
	var info os.FileInfo
	err := os.ErrNotExist
	at := slices.IndexFunc(sockets, func(socket string) bool {
		var statErr error
		if info, statErr = os.Stat(socket); !errors.Is(statErr, os.ErrNotExist) {
			err = statErr
			return true
		}
		return false
	})
	if at < 0 {
		return nil, &UnavailableError{Sockets: sockets, Missing: true, Err: err}
	}
	socket := sockets[at]
	problem := UnavailableError{Sockets: []string{socket}}
	if err == nil {
		err = unix.Access(socket, unix.R_OK|unix.W_OK)
	}
	if err != nil {
		problem.Err, problem.Forbidden = err, errors.Is(err, os.ErrPermission)
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
	return &Runtime{client: c, Socket: socket, Version: strings.TrimPrefix(version.Version, "v"), Owner: Owner(os.Getpid()), Rootless: ownedByUser(info)}, nil
}

// Close closes the connection. Containers keep running.
func (r *Runtime) Close() error { return r.client.Close() }

// in returns a context for requests about one namespace of containerd.
func in(ctx context.Context, namespace string) context.Context {
	return namespaces.WithNamespace(ctx, namespace)
}
