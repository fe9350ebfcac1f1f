// Package launcher starts a gang of ranks through the agents of its hosts,
// stays until every rank is gone, and ends the gang as one when a rank fails.
// It judges nothing: what happened is returned as a job.Outcome.
package launcher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/network"
	"github.com/gangrun/gangrun/launcher/stdin"
)

// Dialer gets an agent onto a host.
type Dialer interface {
	// Dial starts the agent and returns the link to it.
	Dial(ctx context.Context, host string) (Link, error)
}

// Link is a connection to a running agent.
type Link struct {
	Conn net.Conn
	// Local says that the agent is on this machine.
	Local bool
	// Own says that a list of hosts names this machine so; it is not where the host is
	// only simulated.
	Own bool
	// Heard returns when the agent was last heard of. It is nil where Conn itself
	// tells at once that the agent is gone.
	Heard func() time.Time
	// Trouble returns why the agent cannot be reached at present, nil where it can
	// be or nobody knows. It is nil where Heard is.
	Trouble func() error
	// Address is that by which the host was reached; zero on this machine.
	Address netip.Addr
	// Held says that an earlier controller has started the agent, which may hold a
	// gang of it.
	Held bool
	// Anew says that an earlier controller has started an agent there, and that the
	// host was started anew since.
	Anew bool
	// End closes Conn and returns once the agent and every process below it are
	// gone. An error says that they may not be.
	End func(ctx context.Context) error
	// Killed names, once End has returned, the processes that were killed since agent and
	// watchdogs had been killed together and had left them; nil where that is told
	// otherwise.
	Killed func() string
	// Rest brings what the agent has left on its host, once it has ended otherwise
	// than in order; Before what one has left that an earlier controller had started
	// and that is gone. They are nil where there is no such thing.
	Rest, Before func(ctx context.Context, want Rest) error
}

// Options are what a Launcher needs beside its hosts.
type Options struct {
	Dialer Dialer
	Hosts  []job.Host
	// Tmpdir returns the directory that becomes a simulated host's TMPDIR; ""
	// leaves it alone. Nil leaves every host's alone.
	Tmpdir func(host string) string
	// Output gets what the shown ranks print, one call at a time. It may block
	// for as long as the terminal does: that holds up nothing else.
	Output func(job.Output)
	// Stdin is fed to the ranks that the attempt names; nil is none. Of a pipe at most
	// KeepStdin bytes are kept, for attempts after the first.
	Stdin     *os.File
	KeepStdin int64
	// Universe is the number of slots that MPI programs are told of; 0 is the size
	// of the gang.
	Universe int
	// Unclear reports whether what a rank printed leaves open why it ended: the last
	// line is an echo of another rank's failure, or there is none that tells.
	Unclear func(exit job.Exit, printed []job.Line) bool
	// Settle is how long the gang is left alone after a rank failed and it is unclear
	// why: another rank may still be writing the reason. 0 is half a second.
	Settle time.Duration
	// Network is the network over which the ranks meet where they are on several
	// machines, as a CIDR or the name of an interface; empty leaves the choice.
	Network string
	// Env is set for agents on other machines, over their own environment.
	Env []string
	// MPIEnv has every rank's environment be as under mpiexec: OMP_NUM_THREADS is
	// left alone.
	MPIEnv bool
	// Bring puts gangrun-nvml on another machine and returns its path there; nil where
	// there is none to bring.
	Bring func(ctx context.Context, host string) (path string, err error)
	// HostTimeout is how long a host may be silent before it counts as lost, and
	// OrphanGrace how long its agent lives without hearing of this process.
	HostTimeout, OrphanGrace time.Duration
}

// Launcher holds one agent a host for as long as a run lasts. Run is called
// by one goroutine at a time.
type Launcher struct {
	opts  Options
	input *stdin.Input // nil for none

	mu      sync.Mutex
	agents  map[string]*remote
	dialing map[string]chan struct{} // closed when an agent is there, or could not be started
	retired map[string]*remote       // to be ended before another is started in their place
	begun   time.Time
	owed    []*share      // what hosts that are lost have kept
	shown   chan struct{} // closed when the newest attempt's output is shown
	hurry   chan struct{} // closed by Hurry
	hurried sync.Once
	noted   map[string]bool // of Run: what agents have noted

	limits waitLimits

	life   context.Context // of agents and output
	cancel context.CancelFunc
}

// waitLimits bound waits; tests shorten them.
type waitLimits struct{ look, collect, retryRest time.Duration }

// New returns a Launcher that has connected to nobody yet.
func New(opts Options) *Launcher {
	life, cancel := context.WithCancel(context.Background())
	shown := make(chan struct{})
	close(shown)
	return &Launcher{opts: opts, input: stdin.New(opts.Stdin, opts.KeepStdin), agents: map[string]*remote{}, dialing: map[string]chan struct{}{}, retired: map[string]*remote{}, begun: time.Now(), shown: shown, hurry: make(chan struct{}), noted: map[string]bool{}, limits: waitLimits{look: lookLimit, collect: collectLimit, retryRest: restEvery}, life: life, cancel: cancel}
}

// UnreachableError is a Dialer's word that a host cannot be reached, or that no
// agent can be started there: a gang may be placed on others.
type UnreachableError struct {
	Host string
	Err  error
}

// Error says why.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Unreached is a host that has no agent.
type Unreached struct {
	Host string
	Err  error
}

// Lasting is an error of a Dialer that knows whether the same will be said at any other
// time, as long as nobody changes something: a login that is refused is, a host that is
// down is not.
type Lasting interface {
	error
	Lasting() bool
}

// Lasting reports whether the host will not be reached at another time either.
func (u Unreached) Lasting() bool {
	var lasting Lasting
	return errors.As(u.Err, &lasting) && lasting.Lasting()
}

// Probe connects to every host and returns those that it has reached, with what
// their agents found and the addresses at which they reach each other, and the
// others. An error means that those reached have no network in common, or that several
// of them are one machine.
func (l *Launcher) Probe(ctx context.Context) (hosts []job.Host, unreached []Unreached, err error) {
	agents := make([]*remote, len(l.opts.Hosts))
	errs := make([]error, len(agents))
	_ = each(len(agents), func(i int) error {
		agents[i], errs[i] = l.agent(ctx, l.opts.Hosts[i].Name)
		return nil
	})
	var reached []network.Host
	for i, a := range agents {
		host := l.opts.Hosts[i]
		if a == nil {
			unreached = append(unreached, Unreached{host.Name, errs[i]})
			continue
		}
		host.Cores, host.Memory = a.facts.cores, a.facts.memory
		for _, name := range a.facts.rdma {
			host.NICs = append(host.NICs, job.NIC{Name: name})
		}
		hosts = append(hosts, host)
		reached = append(reached, network.Host{Name: host.Name, Reached: a.link.Address, Local: a.link.Local, Own: a.link.Own, Machine: a.facts.machine, Interfaces: a.facts.interfaces})
	}
	if err := network.Distinct(reached); err != nil {
		return hosts, unreached, err
	}
	if slices.ContainsFunc(reached, func(h network.Host) bool { return !h.Local }) && len(hosts) > 1 {
		chosen, err := network.Choose(reached, l.opts.Network)
		if err != nil {
			return hosts, unreached, err
		}
		for i := range hosts {
			hosts[i].Address, hosts[i].Interface, hosts[i].Network = chosen[i].IP, chosen[i].Interface, chosen[i].Network
		}
	}
	return hosts, unreached, nil
}

// Survey asks hosts for the facts of the static preflight, all at once. One host
// compiles the program for all: the hashes must be equal anyway. Those of several
// machines meet then.
func (l *Launcher) Survey(ctx context.Context, hosts []job.Host, ask job.Survey) ([]job.Facts, error) {
	agents := make([]*remote, len(hosts))
	if err := each(len(hosts), func(i int) (err error) {
		agents[i], err = l.agent(ctx, hosts[i].Name)
		return err
	}); err != nil {
		return nil, err
	}
	several := len(agents) > 1 && slices.ContainsFunc(agents, func(a *remote) bool { return !a.link.Local })
	facts := make([]job.Facts, len(hosts))
	err := each(len(facts), func(i int) error {
		a, ask := agents[i], ask
		ask.Compile, ask.Versions = i == 0, several
		data, err := exact.Marshal(ask)
		if err != nil {
			return err
		}
		asking, stop := l.looking(ctx, a, surveyed(ask))
		defer stop()
		reply, err := a.client.Survey(asking, &wire.SurveyRequest{Survey: data})
		if err != nil {
			return fmt.Errorf("survey host %s: %w", hosts[i].Name, unseen(ctx, asking, a, err))
		}
		return exact.Unmarshal(reply.Facts, &facts[i])
	})
	if err == nil && several {
		err = meet(ctx, agents, hosts, ask.CheckpointDir, facts)
	}
	return facts, err
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

// each calls f for 0 to n-1 at the same time and returns the errors, joined.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// agent returns the agent of a host, and starts one where there is none or the
// one that there was has been lost. Who comes while it is being started waits.
func (l *Launcher) agent(ctx context.Context, host string) (*remote, error) {
	for {
		l.mu.Lock()
		a, busy := l.agents[host], l.dialing[host]
		if a == nil && busy == nil {
			l.dialing[host] = make(chan struct{})
		}
		l.mu.Unlock()
		switch {
		case a != nil && !a.link.Held && a.endedWhilePaused(l.opts.OrphanGrace) != nil:
			l.retire(map[string]error{host: nil})
			continue
		case a != nil:
			return a, nil
		case busy == nil:
			return l.dial(ctx, host)
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// dial starts the agent of a host; agent sees to it that nobody else does.
func (l *Launcher) dial(ctx context.Context, host string) (*remote, error) {
	tmpdir := ""
	if l.opts.Tmpdir != nil {
		tmpdir = l.opts.Tmpdir(host)
	}
	err := l.endRetired(ctx, host)
	var a *remote
	if err == nil {
		a, err = connect(ctx, l.opts, host, tmpdir)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.dialing[host])
	delete(l.dialing, host)
	if err != nil {
		return nil, fmt.Errorf("start the agent on %s: %w", host, err)
	}
	l.agents[host] = a
	return a, nil
}

// drop ends an agent that does not answer any more; the next attempt starts
// another. An error says that its ranks may still be there, or that ctx has ended.
func (l *Launcher) drop(ctx context.Context, a *remote) error {
	l.mu.Lock()
	if l.agents[a.host] == a {
		delete(l.agents, a.host)
	}
	l.mu.Unlock()
	return a.leave(ctx, l.leaveLimit(), l.hurry)
}

// endLimit bounds the wait for an agent to be gone: longer than it takes to
// give up processes that SIGKILL does not end. One on another machine may have to
// find out that it is alone before.
const endLimit = 15 * time.Second

// leaveLimit bounds the wait for an agent that is given up: one that is found again
// may have heard something until then, and lives as long anew.
func (l *Launcher) leaveLimit() time.Duration { return 3*endLimit + 2*l.opts.OrphanGrace }

// Hurry ends the running gang, and every later one, without any grace, and has
// nobody wait for a host that is silent.
func (l *Launcher) Hurry() { l.hurried.Do(func() { close(l.hurry) }) }

// Drain waits until Output has been given everything of the attempts that have
// ended, or until ctx ends.
func (l *Launcher) Drain(ctx context.Context) error {
	l.mu.Lock()
	shown := l.shown
	l.mu.Unlock()
	select {
	case <-shown:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends every agent. One that is silent and holds no gang is left to end by
// itself, for want of a controller. A call of Output that blocks for good is left behind;
// everything else has ended when Close returns.
func (l *Launcher) Close() error {
	l.cancel()
	l.mu.Lock()
	shown := l.shown
	var agents []*remote
	var idle []bool
	for _, of := range []map[string]*remote{l.agents, l.retired} {
		for _, a := range of {
			agents = append(agents, a)
			// One that has lost its share of a gang is here no more.
			idle = append(idle, !a.link.Held || a.spent)
		}
	}
	clear(l.agents)
	clear(l.retired)
	l.mu.Unlock()
	hurry := make(chan struct{})
	close(hurry)
	limit := l.leaveLimit()
	err := each(len(agents), func(i int) error {
		a := agents[i]
		if !idle[i] {
			return a.leave(context.Background(), limit, l.hurry)
		}
		if err := a.leave(context.Background(), limit, hurry); err != nil && a.silence() < abandonAfter {
			return err
		}
		return nil
	})
	shownSoon(context.Background(), shown)
	l.input.Close()
	return err
}
