package launcher

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
	"github.com/gangrun/gangrun/internal/wire"
)

// remote is the agent of one host, from the controller's side.
type remote struct {
	host   string
	client wire.AgentClient
	grpc   *grpc.ClientConn
	link   Link

	facts facts
	dir   string // the agent's directory; empty for an agent on this machine
	clock clock
	nvml  nvmlTool

	contact contact
	ending  ending
	owed    atomic.Int32 // gangs of whose output it has kept some
}

// facts is what an agent reports of its host when it is connected.
type facts struct {
	cores      int
	memory     int64
	interfaces []*wire.Interface
	rdma       []string // of other machines only
	machine    string   // identifies the machine whatever name it has; empty if unknown
}

// clock is how the clock of an agent's host differs from this machine's.
type clock struct {
	skew   time.Duration // how far it is ahead
	within time.Duration // the error of skew
}

// nvmlTool is gangrun-nvml on an agent's host.
type nvmlTool struct {
	path  string // empty if it was not copied there
	tried bool   // to copy it
}

// contact watches the time since the last contact with an agent.
type contact struct {
	stop     chan struct{} // closed to end the watch
	watching sync.WaitGroup
	silence  silenceMeter
	judged   atomic.Int64 // the silence, a time.Duration, for which the agent was given up; 0 if it was not
}

// ending is the end of an agent, which several goroutines may wait for.
type ending struct {
	once  sync.Once
	abort context.CancelCauseFunc // ends the wait for it
	over  chan struct{}           // closed when the agent has ended, or the wait has
	err   error                   // read once over is closed
}

// Silence after which an agent counts as lost: a ping is sent after pingEvery
// without a word from it, and must be answered within pingLimit.
const (
	pingEvery = 10 * time.Second // the least that gRPC allows
	pingLimit = 10 * time.Second
)

// spoolName is bridge.SpoolName: this room does not know how hosts are reached.
const spoolName = "logs"

// spool is where an agent on another machine writes what the ranks of an attempt print.
func (a *remote) spool(of job.Attempt) string {
	return path.Join(a.dir, spoolName, of.GangName())
}

// helloLimit bounds the wait for an agent's word on what it is and has: nothing that
// a rank or a file system could hold up.
const helloLimit = 30 * time.Second

// maxMessage bounds a message, in bytes: see agent.MaxMessage.
const maxMessage = 256 << 20

func connect(ctx context.Context, opts poolOptions, host string) (*remote, error) {
	link, err := opts.Dialer.Dial(ctx, host)
	if err != nil {
		return nil, err
	}
	conns := make(chan net.Conn, 1)
	conns <- link.Conn
	// The link is the trust: a socket pair, or later an SSH session.
	keep := keepalive.ClientParameters{Time: pingEvery, Timeout: pingLimit, PermitWithoutStream: true}
	if link.Heard != nil { // watch sees to it
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
	a := &remote{host: host, client: wire.NewAgentClient(g), grpc: g, link: link, contact: contact{stop: make(chan struct{})}}
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
	asking, stop := context.WithTimeoutCause(ctx, helloLimit, fmt.Errorf("the agent on %s has not answered for %s", host, helloLimit))
	defer stop()
	hello, err := a.client.Hello(asking, ask)
	if err != nil {
		if said, ok := status.FromError(err); ok && said.Code() == codes.FailedPrecondition {
			err = errors.New(said.Message()) // the agent's own words
		}
		why := a.why(ended(asking, err))
		if hungUp(why) && ctx.Err() == nil {
			why = &EarlyExitError{Host: host, Local: link.Local, err: why}
		}
		err = errors.Join(why, a.leave(context.Background(), endLimit, ctx.Done()))
		if ctx.Err() == nil && !link.Local {
			err = &UnreachableError{Host: host, Err: err}
		}
		return nil, err
	}
	a.facts.cores, a.facts.memory = int(hello.Cores), hello.Memory
	a.facts.interfaces, a.facts.machine = hello.Interfaces, hello.Machine
	if !link.Local {
		a.dir, a.facts.rdma = string(hello.Dir), hello.Rdma
		a.askClock(asking)
	}
	return a, nil
}

// clockWithin is how exactly another machine's clock is to be known, and clockAsks how
// often it is asked for that: who stands still while it is asked knows it badly.
const (
	clockWithin = 50 * time.Millisecond
	clockAsks   = 5
)

// askClock notes how far the agent's clock is ahead of this machine's.
func (a *remote) askClock(ctx context.Context) {
	for i := range clockAsks {
		asked := time.Now()
		there, err := a.client.Clock(ctx, &wire.ClockRequest{})
		if err != nil {
			return // the next call tells
		}
		if within := time.Since(asked) / 2; i == 0 || within < a.clock.within {
			a.clock.within = within
			a.clock.skew = time.Unix(0, there.Clock).Sub(asked.Add(within).Round(0))
		}
		if a.clock.within <= clockWithin {
			return
		}
	}
}

// watchEvery is how often the silence of an agent is looked at.
const watchEvery = 100 * time.Millisecond

// watch ends the calls of an agent that has been silent for too long.
func (a *remote) watch(limit time.Duration) {
	a.contact.silence.Silence(time.Now()) // it need not have been heard before
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.contact.stop:
			return
		case <-tick.C:
		}
		if silence := a.silence(); silence > limit && a.judge(silence) {
			_ = a.grpc.Close()
		}
	}
}

// judge notes the silence for which the agent is given up, and reports whether it is
// the first.
func (a *remote) judge(silence time.Duration) bool {
	return a.contact.judged.CompareAndSwap(0, max(1, int64(silence)))
}

// silence is the time since the last contact; 0 if the link reports the agent's end.
func (a *remote) silence() time.Duration {
	if a.link.Heard == nil {
		return 0
	}
	return a.contact.silence.Silence(a.link.Heard())
}

// Silence after which a host is suspect, and how often that is looked at.
const (
	suspectAfter = 3 * time.Second
	suspectEvery = 100 * time.Millisecond
)

// errSilent is why calls of an agent have ended.
type errSilent struct {
	host    string
	silence time.Duration
	trouble error // nil where nobody knows more
}

func (e errSilent) Error() string {
	text := fmt.Sprintf("nothing was heard of %s for %s", e.host, e.silence.Round(100*time.Millisecond))
	if e.trouble != nil {
		text += ": " + e.trouble.Error()
	}
	return text
}

// beat is how often an agent is heard that has nothing to say.
const beat = time.Second

// endedWhilePaused returns an error if the agent has ended because this process was paused
// for longer than grace, the time that an agent lives without a controller; else nil.
func (a *remote) endedWhilePaused(grace time.Duration) error {
	if a.link.Heard == nil || !errors.Is(a.trouble(), ErrGone) {
		return nil
	}
	a.silence() // which looks
	gap, woke := a.contact.silence.Gap()
	// What it had sent by then may be heard only after that, and it counts from a word
	// that may be as old.
	if gap+beat <= grace || a.link.Heard().Sub(woke) > suspectAfter {
		return nil
	}
	return fmt.Errorf("gangrun itself stood still for %s, and the agent on its host ended it meanwhile (--orphan-grace is %s)", gap.Round(100*time.Millisecond), grace)
}

// trouble is why an agent on another machine cannot be reached, nil where it can
// be or nobody knows.
func (a *remote) trouble() error {
	if a.link.Trouble == nil {
		return nil
	}
	return a.link.Trouble()
}

// hungUp reports whether a call has failed because its connection has ended, or was
// given up here; or by the end of its own ctx, which its caller knows.
func hungUp(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.Canceled
}

// why returns the reason that lies behind the error of a call.
func (a *remote) why(err error) error {
	if judged := a.contact.judged.Load(); judged > 0 {
		return errSilent{a.host, time.Duration(judged), a.trouble()}
	}
	if trouble := a.trouble(); trouble != nil && hungUp(err) {
		return trouble
	}
	return err
}

// errAgentGone is why an agent answers no more, where nobody knows better.
var errAgentGone = errors.New("the agent on its host is gone")

// failed words the error of what an agent was asked. Where an agent on another machine
// is gone, is silent, or says that its host cannot do it (codes.Aborted), it is an
// UnreachableError.
func (a *remote) failed(ctx context.Context, err error) error {
	gone := hungUp(err)
	away := !a.link.Local && ctx.Err() == nil && (a.contact.judged.Load() > 0 || gone || status.Code(err) == codes.Aborted)
	err = a.why(ended(ctx, err))
	if s, ok := status.FromError(err); ok {
		err = errors.New(s.Message())
		if gone { // which is gRPC's own word
			err = errAgentGone
		}
	}
	if away {
		err = &UnreachableError{Host: a.host, Err: err}
	}
	return err
}

// ended returns why ctx has ended, where that is what a call has failed of: an
// agent may notice a deadline a moment before ctx does.
func ended(ctx context.Context, err error) error {
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
