package container

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	remoteerrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
)

// Credentials has the name and the secret of a user at a registry. With the zero value, gangrun does not log
// in.
type Credentials struct{ User, Secret string }

// PullError reports that an image cannot be pulled.
type PullError struct {
	Name    string
	Refused bool // the registry does not allow the pull with these credentials
	Missing bool // the registry does not have the image
	Err     error
}

// Error returns the name of the image and the reason.
func (e *PullError) Error() string {
	switch {
	case e.Missing:
		return fmt.Sprintf("neither this host nor the registry has the image %s", e.Name)
	case e.Refused:
		return fmt.Sprintf("the registry refuses to give out the image %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("the image %s is not in the store of this host, and cannot be pulled: %v", e.Name, e.Err)
}

// Unwrap returns the reason.
func (e *PullError) Unwrap() error { return e.Err }

// hostsDir is where a site configures registries and their mirrors for containerd.
const hostsDir = "/etc/containerd/certs.d"

// Pull fetches an image from its registry into the store of this host, in Namespace. name is the full name of
// the image (see FullName). The error is a *PullError.
func (r *Runtime) Pull(ctx context.Context, name string, who Credentials) (*Image, error) {
	ctx = in(ctx, Namespace)
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: config.ConfigureHosts(ctx, config.HostOptions{
		HostDir:     config.HostDirFromRoot(hostsDir),
		Credentials: func(string) (string, string, error) { return who.User, who.Secret, nil },
	})})
	pulling, done, err := r.lease(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	pulled, err := r.client.Pull(pulling, name, client.WithResolver(resolver), client.WithPlatformMatcher(platforms.Default()), client.WithPullLabel(usedLabel, nowUsed()))
	if err == nil {
		return r.look(ctx, Namespace, pulled)
	}
	if Full(err) || ctx.Err() != nil {
		return nil, err
	}
	problem := &PullError{Name: name, Err: err, Missing: errdefs.IsNotFound(err)}
	if status, ok := errors.AsType[remoteerrors.ErrUnexpectedStatus](err); ok {
		problem.Refused = status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden
	}
	if errors.Is(err, docker.ErrInvalidAuthorization) || strings.Contains(err.Error(), "insufficient_scope") {
		problem.Refused = true
	}
	return nil, problem
}
