// Package agents has the controller's side of agents, the processes that start ranks on the hosts. A Pool starts an
// agent on each host, through a Dialer, and ends it. The type Agent stands for one such process: it watches the
// contact with the process, and knows why the process is lost.
package agents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/runclock"
	"github.com/gangrun/gangrun/internal/wire"
)

// Agent is the agent of one host, as its controller sees it.
type Agent struct {
	Host   string
	Client wire.AgentClient
	grpc   *grpc.ClientConn
	Link   Link

	Facts Facts
	Dir   string // the agent's directory; empty for an agent on this machine
	Clock Clock
	NVML  NVMLTool

	contact contact
	ending  ending
}

// Facts is what an agent reports about its host when it connects.
type Facts struct {
	Cores      int
	Memory     int64
	Interfaces []*wire.Interface
	RDMA       []string // set only for other machines
	Machine    string   // an ID of the machine that is the same under each of its names; empty if unknown
}

// Clock says how the clock of an agent's host differs from the clock of this machine.
type Clock struct {
	Skew   time.Duration // how far the clock of the host is ahead
	Within time.Duration // the largest possible error of Skew
}

// NVMLTool says whether an agent's host has the program gangrun-nvml.
type NVMLTool struct {
	Path  string // empty if gangrun has not copied it there
	Tried bool   // whether gangrun has tried to copy it
}

// contact watches the time since the last contact with an agent.
type contact struct {
	stop     chan struct{} // closed to end the watch
	watching sync.WaitGroup
	silence  runclock.Silence
	judged   atomic.Int64 // how long the agent had been silent when gangrun gave it up; 0 if it has not
}

// ending is the end of an agent. Several goroutines may wait for it.
type ending struct {
	once  sync.Once
	abort context.CancelCauseFunc // ends the wait for the end of the agent
	over  chan struct{}           // closed when the agent has ended, or when the wait has ended
	err   error                   // may be read once over is closed
}

// Limits for the contact with an agent whose Link cannot tell the time of the last contact. After pingEvery without
// contact, gRPC sends a ping. If the agent does not answer within pingLimit, it counts as lost.
const (
	pingEvery = 10 * time.Second // the least that gRPC allows
	pingLimit = 10 * time.Second
)

// spoolName equals bridge.SpoolName; this package does not import bridge.
const spoolName = "logs"

// Spool returns the directory in which an agent on another machine stores the output of the ranks of an
// attempt.
func (a *Agent) Spool(attempt job.Attempt) string {
	return path.Join(a.Dir, spoolName, attempt.GangName())
}

// HelloLimit is how long the controller waits until an agent has described itself and its host.
// A busy rank or a slow file system cannot delay the agent's answer.
const HelloLimit = 30 * time.Second

// maxMessage limits the size of a message, in bytes. See agent.MaxMessage.
const maxMessage = 256 << 20

func connect(ctx context.Context, opts Options, host string) (*Agent, error) {
	link, err := opts.Dialer.Dial(ctx, host)
	if err != nil {
		return nil, err
	}
	conns := make(chan net.Conn, 1)
	conns <- link.Conn
	// No TLS: the link is a socket pair or an SSH session.
	keep := keepalive.ClientParameters{Time: pingEvery, Timeout: pingLimit, PermitWithoutStream: true}
	if link.Heard != nil { // the method watch notices silence
		keep = keepalive.ClientParameters{Time: math.MaxInt64}
	}
	g, err := grpc.NewClient("passthrough:///agent",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-conns:
				return c, nil
			default:
				return nil, errors.New("the agent's connection is broken")
			}
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithInitialWindowSize(256<<10), grpc.WithInitialConnWindowSize(1<<20),
		grpc.WithKeepaliveParams(keep),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, errors.Join(err, link.End(ctx))
	}
	a := &Agent{Host: host, Client: wire.NewAgentClient(g), grpc: g, Link: link, contact: contact{stop: make(chan struct{})}}
	ask := &wire.HelloRequest{Host: host}
	if opts.Tmpdir != nil {
		ask.Tmpdir = []byte(opts.Tmpdir(host))
	}
	if !link.Local {
		ask.Env, ask.OrphanGraceMs = wire.Bytes(opts.Env), opts.OrphanGrace.Milliseconds()
	}
	if link.Heard != nil {
		a.contact.watching.Go(func() { a.watch(opts.HostTimeout) })
	}
	asking, stop := context.WithTimeoutCause(ctx, HelloLimit, fmt.Errorf("the agent on %s has not answered for %s", host, HelloLimit))
	defer stop()
	hello, err := a.Client.Hello(asking, ask)
	if err != nil {
		if said, ok := status.FromError(err); ok && said.Code() == codes.FailedPrecondition {
			err = errors.New(said.Message())
		}
		why := a.Why(Cause(asking, err))
		if HungUp(why) && ctx.Err() == nil {
			why = &EarlyExitError{Host: host, Local: link.Local, err: why}
		}
		err = errors.Join(why, a.leave(context.Background(), EndLimit, ctx.Done()))
		if ctx.Err() == nil && !link.Local {
			err = &UnreachableError{Host: host, Err: err}
		}
		return nil, err
	}
	a.Facts.Cores, a.Facts.Memory = int(hello.Cores), hello.Memory
	a.Facts.Interfaces, a.Facts.Machine = hello.Interfaces, hello.Machine
	if !link.Local {
		a.Dir, a.Facts.RDMA = string(hello.Dir), hello.Rdma
		a.askClock(asking)
	}
	return a, nil
}

// clockWithin is the wanted accuracy of the difference between two clocks. clockAsks limits how often askClock asks for
// the time. A pause of either process makes an answer inaccurate.
const (
	clockWithin = 50 * time.Millisecond
	clockAsks   = 5
)

// askClock finds out how far the agent's clock is ahead of this machine's clock.
func (a *Agent) askClock(ctx context.Context) {
	for i := range clockAsks {
		asked := time.Now()
		there, err := a.Client.Clock(ctx, &wire.ClockRequest{})
		if err != nil {
			return // if the connection has ended, the next call fails, too
		}
		if within := time.Since(asked) / 2; i == 0 || within < a.Clock.Within {
			a.Clock.Within = within
			a.Clock.Skew = time.Unix(0, there.Clock).Sub(asked.Add(within).Round(0))
		}
		if a.Clock.Within <= clockWithin {
			return
		}
	}
}

// watchEvery is how often watch checks the silence of an agent.
const watchEvery = 100 * time.Millisecond

// watch decides that an agent is lost if it has been silent for longer than limit. It then closes the connection, so
// that every call to the agent returns an error. From that error, the launcher learns that the host is lost.
func (a *Agent) watch(limit time.Duration) {
	a.contact.silence.Since(time.Now()) // silence counts from here, even without any earlier contact
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.contact.stop:
			return
		case <-tick.C:
		}
		if silence := a.Silence(); silence > limit && a.Judge(silence) {
			_ = a.grpc.Close()
		}
	}
}

// Judge records that gangrun has given up the agent. silence is how long gangrun has received nothing from the
// agent. Judge returns false if gangrun had given up the agent before.
func (a *Agent) Judge(silence time.Duration) bool {
	return a.contact.judged.CompareAndSwap(0, max(1, int64(silence)))
}

// Silence returns the time since the last contact with the agent. It returns 0 if Link.Heard is
// nil.
func (a *Agent) Silence() time.Duration {
	if a.Link.Heard == nil {
		return 0
	}
	return a.contact.silence.Since(a.Link.Heard())
}

// A host is suspect after a silence of SuspectAfter. The launcher checks this every
// SuspectEvery.
const (
	SuspectAfter = 3 * time.Second
	SuspectEvery = 100 * time.Millisecond
)

// errSilent is why the calls to an agent have ended: gangrun had no contact with the agent for too long.
type errSilent struct {
	host    string
	silence time.Duration
	trouble error // nil if nothing more is known
}

func (e errSilent) Error() string {
	text := fmt.Sprintf("no contact with %s for %s", e.host, e.silence.Round(100*time.Millisecond))
	if e.trouble != nil {
		text += ": " + e.trouble.Error()
	}
	return text
}

// beat is the time after which an idle agent sends a message.
const beat = time.Second

// EndedWhilePaused returns an error if the agent has ended because this process was paused for
// longer than grace. Otherwise it returns nil. grace is how long an agent lives without contact
// with a controller.
func (a *Agent) EndedWhilePaused(grace time.Duration) error {
	if a.Link.Heard == nil || !errors.Is(a.Trouble(), ErrGone) {
		return nil
	}
	a.Silence() // update the silence, so that Pause is up to date
	gap, woke := a.contact.silence.Pause()
	// Messages that the agent sent before it ended may arrive after the pause. The agent
	// counts its grace from a message of this process, which may be one beat old.
	if gap+beat <= grace || a.Link.Heard().Sub(woke) > SuspectAfter {
		return nil
	}
	return errPaused{gap, grace}
}

// errPaused is why an agent has ended: this process was paused, and so the agent had no contact for longer than its
// grace.
type errPaused struct{ gap, grace time.Duration }

func (e errPaused) Error() string {
	return fmt.Sprintf("gangrun itself stood still for %s, and the agent on its host ended it meanwhile (--orphan-grace is %s)", e.gap.Round(100*time.Millisecond), e.grace)
}

// Trouble returns why an agent on another machine cannot be reached. It returns nil if the
// agent can be reached or the reason is unknown.
func (a *Agent) Trouble() error {
	if a.Link.Trouble == nil {
		return nil
	}
	return a.Link.Trouble()
}

// HungUp reports whether err says that a call of an agent has failed because its connection or its context has
// ended.
func HungUp(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.Canceled
}

// Why returns the reason why a call of the agent has failed with err, as far as the Agent knows it.
func (a *Agent) Why(err error) error {
	if judged := a.contact.judged.Load(); judged > 0 {
		return errSilent{a.Host, time.Duration(judged), a.Trouble()}
	}
	if trouble := a.Trouble(); trouble != nil && HungUp(err) {
		return trouble
	}
	return err
}

// Failed returns the error to report when a call of the agent has failed. The error is an UnreachableError if
// the agent is on another machine and is gone or silent, or if it answers that its host cannot do what was
// asked (codes.Aborted).
func (a *Agent) Failed(ctx context.Context, err error) error {
	gone := HungUp(err)
	away := !a.Link.Local && ctx.Err() == nil && (a.contact.judged.Load() > 0 || gone || status.Code(err) == codes.Aborted)
	err = a.Why(Cause(ctx, err))
	if s, ok := status.FromError(err); ok {
		err = errors.New(s.Message())
		if gone { // s.Message is gRPC's text
			err = ErrAgentGone
		}
	}
	if away {
		err = &UnreachableError{Host: a.Host, Err: err}
	}
	return err
}

// Cause returns the cause of ctx if ctx has ended, and otherwise err. If err reports a
// deadline, Cause first waits for the deadline of ctx, because an agent may notice the deadline
// a moment earlier.
func Cause(ctx context.Context, err error) error {
	if status.Code(err) == codes.DeadlineExceeded {
		if _, ok := ctx.Deadline(); ok {
			<-ctx.Done()
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
