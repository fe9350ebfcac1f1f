package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/contain"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// contained is a second agent of this host, which runs in a view of the host or in a container. It runs one gang. This
// agent forwards the requests and replies for that gang.
type contained struct {
	gang   string // RUN/ATTEMPT
	logs   string // the directory of its ranks' output
	room   room
	grpc   *grpc.ClientConn
	client wire.AgentClient
}

// room is what a contained agent runs in.
type room interface {
	// exited returns a channel that is closed when the contained agent has ended.
	exited() <-chan struct{}
	// said returns what the contained agent has written to its standard error, if that is known.
	said() string
	// outOfMemory reports whether the kernel has killed processes because the room's memory was used up.
	outOfMemory() bool
	// end kills every process of the room, removes the room, and returns when both is done.
	end()
}

// containLimit limits the time for making a room. Normally, that takes milliseconds. On an overloaded host, it takes
// seconds; a container then may need more than half a minute.
const containLimit = time.Minute

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
	ctx, cancel := context.WithTimeoutCause(ctx, containLimit, fmt.Errorf("the host has not made its container within %s: it is overloaded, or containerd hangs", containLimit))
	defer cancel()
	var c *contained
	mixed := false
	if len(r.Box) > 0 {
		var box job.Box
		if err := exact.Unmarshal(r.Box, &box); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		c, err = s.newBox(ctx, r.Gang, host, logs, box)
	} else {
		request := contain.Request{
			Room: layerSize() / int64(max(1, r.Sharing)), Through: []string{logs},
			Work: wire.Strings(r.Work), Needed: append(wire.Strings(r.Needed), usualDirs(env)...),
		}
		if len(r.Empty) > 0 {
			request.Empty = []string{string(r.Empty)}
		}
		if c, err = s.newView(ctx, r.Gang, host, env, request); err == nil {
			mixed = c.room.(*view).user && request.Mixed()
		}
	}
	if cannot, ok := errors.AsType[*contain.Error](err); ok {
		return &wire.ContainReply{Reason: []byte(cannot.Error())}, nil
	}
	if err != nil && ctx.Err() == nil {
		return &wire.ContainReply{Reason: []byte("cannot start an agent for it: " + err.Error())}, nil
	}
	if err != nil {
		return nil, status.Error(codes.Aborted, context.Cause(ctx).Error())
	}
	c.logs = logs
	s.gangs.mu.Lock()
	defer s.gangs.mu.Unlock()
	s.gangs.contained = c
	return &wire.ContainReply{Mixed: mixed}, nil
}

// connect opens the connection to the agent in a room. If that agent does not answer, connect ends the room.
func connect(ctx context.Context, gang, host string, in room, conn net.Conn) (*contained, error) {
	conns := make(chan net.Conn, 1)
	conns <- conn
	client, err := grpc.NewClient("passthrough:///contained",
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
		in.end()
		return nil, errors.Join(err, conn.Close())
	}
	c := &contained{gang: gang, room: in, grpc: client, client: wire.NewAgentClient(client)}
	if _, err := c.client.Hello(ctx, &wire.HelloRequest{Host: host, Contained: true}); err != nil {
		notify.Wait(in.exited(), lastReplyLimit) // the agent may be about to write the reason
		why := in.said()
		c.close()
		return nil, fmt.Errorf("a contained agent does not answer: %s", cmp.Or(why, err.Error()))
	}
	return c, nil
}

// close ends the contained agent and every process in its room, and returns when they are gone.
func (c *contained) close() {
	_ = c.grpc.Close() // the agent then ends its ranks and itself
	notify.Wait(c.room.exited(), endLimit)
	c.room.end()
}

// socketPair returns the two ends of a socket. The second end is for a child process.
func socketPair(kind int) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}
