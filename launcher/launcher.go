// Package launcher starts a gang of ranks through the agents of its hosts, and waits until
// every rank is gone. When a rank fails, it ends the whole gang. It returns what happened as a
// job.Outcome, without looking for the cause.
package launcher

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/collect"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/meeting"
	"github.com/gangrun/gangrun/launcher/network"
	"github.com/gangrun/gangrun/launcher/stdin"
)

// Options are the settings of a Launcher.
type Options struct {
	Run    string // the ID of the run
	Dialer agents.Dialer
	Hosts  []job.Host
	// Tmpdir returns the TMPDIR of a simulated host. If it returns "", or is nil, TMPDIR is not
	// changed.
	Tmpdir func(host string) string
	// Output is called with the output of those ranks whose output the user wants to see. Calls do not overlap.
	// Output may block, for instance because the terminal blocks. Only further output then waits.
	Output func(job.Output)
	// Stdin is the standard input for the ranks that the attempt names; nil means none. If Stdin is a pipe, the
	// Launcher keeps up to KeepStdin bytes of the input for later attempts.
	Stdin     *os.File
	KeepStdin int64
	// Universe is the value of MPI_UNIVERSE_SIZE for programs of MPICH: a number of ranks, -1 for no limit
	// (INFINITE), or 0 for the size of the gang.
	Universe int
	// Unclear reports whether the output of a rank does not tell why the rank ended: its last line is a
	// consequence of another rank's failure, or no line gives a reason.
	Unclear func(exit job.Exit, printed []job.Line) bool
	// Settle is how long the Launcher waits before it ends the gang, if Unclear returns true for a rank that failed.
	// In that time, another rank may still write the reason. 0 means half a second.
	Settle time.Duration
	// Network is the network over which ranks on several machines communicate: a CIDR or the
	// name of an interface. If it is empty, the Launcher chooses one.
	Network string
	// Env has variables for agents on other machines. They replace variables of the same name that the agents
	// have there.
	Env []string
	// MPIEnv, if true, makes the environment of the ranks as with mpiexec: gangrun does not set OMP_NUM_THREADS.
	MPIEnv bool
	// Bring copies gangrun-nvml to another machine and returns its path there. It is nil if
	// this machine has no gangrun-nvml.
	Bring func(ctx context.Context, host string) (path string, err error)
	// Image is the container image of the job; nil means none.
	Image *Image
	// HostTimeout is how long a host may be silent before it counts as lost. OrphanGrace is how
	// long an agent lets its ranks run while it receives nothing from this process.
	HostTimeout, OrphanGrace time.Duration
}

// Launcher has one agent on each host during a run. Calls of Run must not overlap.
type Launcher struct {
	opts  Options
	input *stdin.Input // nil for none
	pool  *agents.Pool
	logs  *collect.Collector

	mu      sync.Mutex
	begun   time.Time
	shown   chan struct{} // closed when the newest attempt's output is shown
	hurry   chan struct{} // closed by Hurry
	hurried sync.Once
	orders  orders          // for the running gang
	noted   map[string]bool // notes that agents have sent; used only by Run

	look   time.Duration // lookLimit; tests shorten it
	images images

	life   context.Context // of agents and output
	cancel context.CancelFunc
}

// orders are the orders to the running gang from other goroutines.
type orders struct {
	signals chan syscall.Signal // for the ranks of the gang
	stacks  chan stacksAsk
}

// New returns a Launcher. It connects to hosts when they are first needed.
func New(opts Options) *Launcher {
	life, cancel := context.WithCancel(context.Background())
	shown := make(chan struct{})
	close(shown)
	hurry := make(chan struct{})
	return &Launcher{
		opts: opts, input: stdin.New(opts.Stdin, opts.KeepStdin),
		pool:   agents.New(agents.Options{Dialer: opts.Dialer, Tmpdir: opts.Tmpdir, Env: opts.Env, HostTimeout: opts.HostTimeout, OrphanGrace: opts.OrphanGrace, Hurry: hurry}),
		orders: orders{make(chan syscall.Signal, 4), make(chan stacksAsk)},
		begun:  time.Now(), shown: shown, hurry: hurry, noted: map[string]bool{},
		logs: collect.New(life, hurry), look: lookLimit, life: life, cancel: cancel,
	}
}

// Probe connects to every host. hosts has the hosts that it has reached, with what their agents have found, and
// with the addresses at which these hosts reach each other. unreached has the other hosts. An error means that
// there is no network over which the reached hosts reach each other, or that several of them are the same machine.
func (l *Launcher) Probe(ctx context.Context) (hosts []job.Host, unreached []agents.Unreached, err error) {
	connected := make([]*agents.Agent, len(l.opts.Hosts))
	errs := make([]error, len(connected))
	_ = agents.Each(len(connected), func(i int) error {
		connected[i], errs[i] = l.pool.Get(ctx, l.opts.Hosts[i].Name)
		return nil
	})
	var reached []network.Host
	for i, a := range connected {
		host := l.opts.Hosts[i]
		if a == nil {
			unreached = append(unreached, agents.Unreached{Host: host.Name, Err: errs[i]})
			continue
		}
		host.Cores, host.Memory = a.Facts.Cores, a.Facts.Memory
		for _, name := range a.Facts.RDMA {
			host.NICs = append(host.NICs, job.NIC{Name: name})
		}
		hosts = append(hosts, host)
		reached = append(reached, network.Host{Name: host.Name, Reached: a.Link.Address, Local: a.Link.Local, Own: a.Link.Own, Machine: a.Facts.Machine, Interfaces: a.Facts.Interfaces})
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

// Survey asks all hosts at the same time for the facts that the static preflight needs. Only one host checks
// that the program can be parsed. That is enough, because the preflight also requires that the files of the
// program are equal on all hosts. If there are several machines, the hosts then check whether they reach each
// other.
func (l *Launcher) Survey(ctx context.Context, hosts []job.Host, ask job.Survey) ([]job.Facts, error) {
	connected, err := l.agents(ctx, hosts)
	if err != nil {
		return nil, err
	}
	several := len(connected) > 1 && slices.ContainsFunc(connected, func(a *agents.Agent) bool { return !a.Link.Local })
	facts := make([]job.Facts, len(hosts))
	err = agents.Each(len(facts), func(i int) error {
		a, ask := connected[i], ask
		ask.Compile, ask.Versions = i == 0, several
		var image *job.ImageFact
		if ask.Box != nil {
			fact, err := l.image(ctx, a)
			if err != nil {
				return err
			}
			if image = &fact; fact.Problem != "" {
				facts[i] = job.Facts{Host: hosts[i].Name, Image: image}
				return nil
			}
			box := l.boxFor(ask.Box, nil)
			if ask.GPUs != 0 {
				box = l.boxFor(ask.Box, uuids(hosts[i]))
			}
			ask.Box = &box
		}
		data, err := exact.Marshal(ask)
		if err != nil {
			return err
		}
		asking, stop := l.looking(ctx, a, surveyed(ask))
		defer stop()
		reply, err := a.Client.Survey(asking, &wire.SurveyRequest{Survey: data, Gang: l.opts.Run + "/survey"})
		if err != nil {
			return fmt.Errorf("survey host %s: %w", hosts[i].Name, unseen(ctx, asking, a, err))
		}
		if err := exact.Unmarshal(reply.Facts, &facts[i]); err != nil {
			return err
		}
		if facts[i].Image == nil { // no container problem was reported
			facts[i].Image = image
		}
		return nil
	})
	if err == nil && several {
		err = meeting.Meet(ctx, connected, hosts, ask.CheckpointDir, facts)
	}
	return facts, err
}

// agents connects to the agents of hosts.
func (l *Launcher) agents(ctx context.Context, hosts []job.Host) ([]*agents.Agent, error) {
	connected := make([]*agents.Agent, len(hosts))
	return connected, agents.Each(len(hosts), func(i int) (err error) {
		connected[i], err = l.pool.Get(ctx, hosts[i].Name)
		return err
	})
}

// Measure measures how fast the hosts are: see meeting.Measure.
func (l *Launcher) Measure(ctx context.Context, hosts []job.Host, ask job.Measure) ([]job.Speed, error) {
	connected, err := l.agents(ctx, hosts)
	if err != nil {
		return nil, err
	}
	return meeting.Measure(ctx, connected, hosts, ask)
}

// Hurry ends the running gang, and every later one, without a grace period. The Launcher then
// no longer waits for silent hosts.
func (l *Launcher) Hurry() { l.hurried.Do(func() { close(l.hurry) }) }

// Signal sends a signal to the ranks of the running gang that handle it, unless the gang is a trial. It does
// nothing if no gang runs.
func (l *Launcher) Signal(sig syscall.Signal) {
	select {
	case l.orders.signals <- sig:
	default: // several signals wait already
	}
}

// Drain waits until Output has received all output of the attempts that have ended, or until
// ctx ends.
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

// Close ends all agents. It does not wait for silent agents without ranks, because these end by themselves when
// they have no controller. It does not wait for a call of Output that blocks. Everything else has ended when
// Close returns.
func (l *Launcher) Close() error {
	l.cancel()
	l.mu.Lock()
	shown := l.shown
	l.mu.Unlock()
	err := l.pool.Close()
	shownSoon(context.Background(), shown)
	l.input.Close()
	return err
}
