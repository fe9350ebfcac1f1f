package agent

import (
	"context"

	"github.com/gangrun/gangrun/internal/agent/box"
	"github.com/gangrun/gangrun/internal/agent/kernellog"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/container"
)

// boxRoom is a room that is a container.
type boxRoom struct {
	*box.Box
	kills string // the file that counts the container's OOM kills; empty if there is none
}

func (b boxRoom) exited() <-chan struct{} { return b.Exited() }
func (b boxRoom) said() string            { return b.Said() }
func (b boxRoom) end()                    { b.Close() }
func (b boxRoom) outOfMemory() bool {
	n, _ := kernellog.Kills(b.kills)
	return n > 0
}

// newBox starts a container for a gang, and an agent in it. logs is the directory for the output of ranks.
func (s *server) newBox(ctx context.Context, gang, host, logs string, want job.Box) (*contained, error) {
	s.boxes.Store(true)
	b, conn, err := box.New(ctx, s.containerd(), gang, host, logs, want)
	if err != nil {
		return nil, err
	}
	kills := ""
	if want.Memory > 0 { // without a memory limit, the container may share its cgroup with others
		kills = kernellog.KillsFile(b.PID)
	}
	return connect(ctx, gang, host, boxRoom{b, kills}, conn)
}

// adapt changes a controller's request to fit a rank in a container. The entry point of the image comes before the
// arguments of the rank. If no directory is named, the rank starts in the image's directory.
func (b boxRoom) adapt(start *wire.Start) {
	start.OomFirst = true
	if len(start.Workdir) == 0 {
		start.Workdir = []byte(b.Workdir())
	}
	for _, r := range start.Ranks {
		r.Argv = append(wire.Bytes(b.Entrypoint()), r.Argv...)
	}
}

// containerd returns the paths of containerd's socket, which depend on the environment of the user.
func (s *server) containerd() []string {
	_, env := s.settings.get()
	return container.Sockets(func(name string) string { return environ.Lookup(env, name) })
}
