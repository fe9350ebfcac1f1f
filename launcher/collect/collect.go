// Package collect copies the output of ranks on other machines to the log files of an attempt on this machine,
// while the ranks run. A slow connection, or a full disk on this machine, does not block a rank, because its
// output waits on its own host. When the host of a lost agent answers again, the package fetches the output
// that the agent has left.
package collect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/agents"
)

const (
	// slowCollect is how long the collection may take before a note says so.
	slowCollect = 3 * time.Second
	// collectEvery is how often the progress of a collection is checked.
	collectEvery = 100 * time.Millisecond
	// keepLimit limits the wait until an agent confirms that it keeps output.
	keepLimit = 3 * time.Second
)

// Source is one host's part of a gang.
type Source struct {
	Number int // the number of the host in the placement
	Agent  *agents.Agent
	Ranks  []job.Rank
	// Lost is why the agent was gone when this controller adopted the gang; nil if the agent
	// was there.
	Lost error
}

// Collector collects the output of all gangs of a run.
type Collector struct {
	// Limit is how long the Collector waits for output of a host after the end of a gang, if no output comes although
	// the host is not silent. New sets it to 30 seconds.
	Limit time.Duration
	// RetryEvery is the time between two tries to fetch output from a lost host. New sets it to 10 seconds.
	RetryEvery time.Duration

	life  context.Context
	hurry <-chan struct{}

	mu      sync.Mutex
	pending []*hostLogs           // logs of which a part is still on lost hosts
	kept    map[*agents.Agent]int // for each agent, the number of gangs of which it keeps output
}

// New returns a Collector. The Collector stops when ctx ends. After hurry is closed, it no longer waits for output.
func New(ctx context.Context, hurry <-chan struct{}) *Collector {
	return &Collector{Limit: 30 * time.Second, RetryEvery: 10 * time.Second, life: ctx, hurry: hurry, kept: map[*agents.Agent]int{}}
}

// Collection is the output of one gang.
type Collection struct {
	collector *Collector
	attempt   job.Attempt
	emit      func(job.Event)
	cancel    context.CancelFunc
	hosts     []*hostLogs
}

// Start starts to collect the output of the ranks of sources. The caller must call Wait when the gang has ended.
func (c *Collector) Start(a job.Attempt, sources []Source, emit func(job.Event)) (*Collection, error) {
	ctx, cancel := context.WithCancel(c.life)
	all := &Collection{collector: c, attempt: a, emit: emit, cancel: cancel}
	for _, from := range sources {
		if from.Lost != nil && !errors.Is(from.Lost, agents.ErrEndedWithController) {
			all.hosts = append(all.hosts, lostLogs(a, from))
		}
		if from.Agent.Link.Local || from.Lost != nil {
			continue
		}
		h := newHostLogs(a, from)
		all.hosts = append(all.hosts, h)
		if err := h.openAll(emit); err != nil {
			all.close()
			return nil, err
		}
	}
	for _, h := range all.hosts {
		if h.from.Lost != nil {
			continue
		}
		var receiving context.Context
		receiving, h.cancel = context.WithCancelCause(ctx)
		go h.receive(receiving, emit) // Wait waits for this goroutine
	}
	return all, nil
}

// Over returns a channel that is closed when no more output comes from the host of that number.
// It returns nil if the Collection gets no output from that host.
func (c *Collection) Over(number int) <-chan struct{} {
	for _, h := range c.hosts {
		if h.from.Number == number && h.from.Lost == nil {
			return h.over
		}
	}
	return nil
}

// errStalled is why gangrun no longer waits for output: for limit, none has arrived or none could be written.
type errStalled struct {
	limit time.Duration
	stuck error // why the output cannot be written; nil if no output comes
}

func (e errStalled) Error() string {
	if e.stuck != nil {
		return fmt.Sprintf("it could not be written for %s: %v", e.limit, e.stuck)
	}
	return fmt.Sprintf("nothing more of it has come for %s", e.limit)
}

// Wait waits for the rest of the output of a gang that has ended. It waits as long as output comes, but at most
// until hurry is closed (see New). Meanwhile it calls watch several times a second.
func (c *Collection) Wait(watch func()) {
	slow := time.NewTimer(slowCollect)
	defer slow.Stop()
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	hurry := c.collector.hurry
	for _, h := range c.hosts {
		h.progress.silence.Since(time.Now()) // the silence counts from here
	}
	for _, h := range c.hosts {
		for open := true; open; {
			select {
			case <-h.over:
				open = false
			case <-tick.C:
				watch()
				c.giveUp()
			case <-slow.C:
				c.note("", c.slow())
			case <-hurry:
				hurry = nil
				c.cancel()
			}
		}
	}
	c.close()
	c.keep()
}

// note emits a note.
func (c *Collection) note(host, text string) {
	c.emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: c.attempt.Number, Host: host, Text: text})
}

// giveUp gives up the collection from a host if nothing has come from that host for too long. If the host is silent,
// giveUp waits until the host counts as lost.
func (c *Collection) giveUp() {
	for _, h := range c.hosts {
		if h.from.Lost != nil {
			continue
		}
		written, stuck := h.state()
		if stuck == nil && h.from.Agent.Silence() > agents.SuspectAfter {
			written = time.Now()
		}
		if limit := c.collector.Limit; h.progress.silence.Since(written) > limit {
			h.cancel(errStalled{limit, stuck})
		}
	}
}

// slow returns a note that says why the run has not ended yet.
func (c *Collection) slow() string {
	for _, h := range c.hosts {
		if _, stuck := h.state(); stuck != nil {
			return fmt.Sprintf("the ranks' output waits on their hosts, since it cannot be written here: %v; free space in %s, or end gangrun with Ctrl-C twice; what does not come for %s stays there",
				stuck, c.attempt.LogDir, c.collector.Limit)
		}
	}
	return "the ranks' output is still on its way from their hosts"
}

// keep tells the agents to keep on their hosts the output that could not be written here.
func (c *Collection) keep() {
	_ = agents.Each(len(c.hosts), func(i int) error {
		h := c.hosts[i]
		if !h.end.notWritten || h.from.Agent.Silence() > agents.SuspectAfter {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), keepLimit)
		defer cancel()
		_, err := h.from.Agent.Client.Keep(ctx, &wire.KeepRequest{})
		h.end.keptForSure = err == nil
		return nil
	})
}

func (c *Collection) close() {
	c.cancel()
	for _, h := range c.hosts {
		h.close()
	}
}
