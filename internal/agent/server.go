package agent

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/devices"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/identity"
	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/survey"
	"github.com/gangrun/gangrun/internal/wire"
)

// server serves one controller at a time.
type server struct {
	wire.UnimplementedAgentServer
	children  *process.Children
	group     *cgroup.Group
	link      *link
	settings  *settings
	gangs     gangs
	leases    leases
	leftovers *leftovers
	files     gangFiles
	devices   devices.Reader
	boxes     atomic.Bool   // this agent has started a container
	surveyed  chan struct{} // has an element while there is a container of a survey: all these have the same ID

	life    context.Context    // ends all gangs when it ends
	end     context.CancelFunc // ends life
	running sync.WaitGroup     // counts the gangs that run
}

func newServer(c *process.Children, group *cgroup.Group, line *link) *server {
	life, end := context.WithCancel(context.Background())
	return &server{
		children: c, group: group, link: line, life: life, end: end, settings: newSettings(),
		gangs: gangs{started: map[string]*startedGang{}}, devices: devices.Reader{Children: c}, surveyed: make(chan struct{}, 1), leftovers: &leftovers{looked: make(chan struct{})},
	}
}

// MaxMessage is the size limit of a message of the protocol, in bytes. One message holds the
// environment and the arguments of every rank of a host.
const MaxMessage = 256 << 20

// minPing is the shortest time that gRPC allows between two pings of a controller. It must be shorter than the interval
// of the controller's pings, which is 10 s. Otherwise gRPC would close the connection of a gang that is silent.
const minPing = time.Second

// stuckLimit is how long a controller that takes over waits for the handlers of the previous controller. They may never
// end, for instance if a file system hangs.
const stuckLimit = time.Second

// serve serves the controller, and then each controller that takes over. It returns when the last controller has closed
// its connection or ctx has ended, and every gang and every handler has ended.
func (s *server) serve(ctx context.Context) error {
	var errs error
	var answering []<-chan error
	for more := true; more && ctx.Err() == nil; {
		ended := s.answer(ctx, s.link.current())
		answering = append(answering, ended)
		more = s.link.successorWaits()
	}
	s.end()
	for _, ended := range answering {
		errs = errors.Join(errs, <-ended)
	}
	s.running.Wait()
	return errs
}

// answer serves the connection conn until it closes or ctx ends. The channel that answer returns receives a value when
// all handlers have ended. answer itself waits for the handlers for at most stuckLimit.
func (s *server) answer(ctx context.Context, conn net.Conn) (ended <-chan error) {
	g := grpc.NewServer(
		grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		// The events of a gang must not wait for the output of its ranks.
		grpc.InitialWindowSize(256<<10), grpc.InitialConnWindowSize(1<<20),
		// The agent sends no pings. A controller that is stopped (Ctrl-Z) cannot answer them, but is not dead. When a
		// controller dies, its connection ends.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: math.MaxInt64}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	)
	wire.RegisterAgentServer(g, s)
	l := newListener(conn)
	served, stopped, result := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	select {
	case <-l.closed:
	case <-ctx.Done():
	}
	if !s.link.successorWaits() { // no controller takes over
		s.end()
	}
	go func() { // the goroutine ends with the last handler, and serve waits for it
		g.Stop() // cancels every handler's context
		l.Close()
		err := <-served
		if errors.Is(err, net.ErrClosed) || errors.Is(err, grpc.ErrServerStopped) {
			err = nil
		}
		result <- err
		close(stopped)
	}()
	notify.Wait(stopped, stuckLimit)
	return result
}

// Hello implements wire.AgentServer.
func (s *server) Hello(_ context.Context, r *wire.HelloRequest) (*wire.HelloReply, error) {
	if err := s.settings.set(r); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if !r.Contained {
		s.leftovers.once.Do(func() { s.running.Go(func() { s.leftovers.tidy(s.life) }) })
	}
	if r.OrphanGraceMs > 0 {
		s.link.grace.Store(int64(time.Duration(r.OrphanGraceMs) * time.Millisecond))
	}
	cores, memory := survey.Capacity()
	return &wire.HelloReply{
		Pid: int32(os.Getpid()), Cores: int32(cores), Memory: memory, Dir: []byte(s.link.dir),
		Interfaces: survey.Interfaces(), Rdma: survey.RDMA(), Machine: identity.Machine(),
	}, nil
}

// Clock implements wire.AgentServer.
func (s *server) Clock(context.Context, *wire.ClockRequest) (*wire.ClockReply, error) {
	return &wire.ClockReply{Clock: hostclock.Now().UnixNano()}, nil
}

// Port implements wire.AgentServer.
func (s *server) Port(context.Context, *wire.PortRequest) (*wire.PortReply, error) {
	port, err := freePort()
	if err != nil {
		return nil, status.Error(codes.Aborted, err.Error())
	}
	return &wire.PortReply{Port: int32(port)}, nil
}
