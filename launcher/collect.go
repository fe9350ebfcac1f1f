package launcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// slowCollect is after how long it is told that logs are still on their way.
const slowCollect = 3 * time.Second

// collectLimit is how long a gang that is over is waited for whose output comes no
// further, though its host is heard.
const collectLimit = 30 * time.Second

// collection is how what ranks on other machines print comes into the log files of
// the attempt, as it is printed. A slow line or a full disk here holds up no rank: it
// waits on the rank's host.
type collection struct {
	attempt job.Attempt
	emit    func(job.Event)
	cancel  context.CancelFunc
	limit   time.Duration // collectLimit
	shares  []*share
}

// collect starts to collect what the ranks of nodes print.
func (l *Launcher) collect(a job.Attempt, nodes []*node, emit func(job.Event)) (*collection, error) {
	ctx, cancel := context.WithCancel(l.life)
	c := &collection{attempt: a, emit: emit, cancel: cancel, limit: l.limits.collect}
	for _, n := range nodes {
		if n.lost != nil && !errors.Is(n.lost, agents.ErrEndedWithController) {
			c.shares = append(c.shares, lostShare(a, n))
		}
		if n.agent.Link.Local || n.lost != nil {
			continue
		}
		s := &share{attempt: a, node: n, ask: &wire.OutputRequest{Gang: a.GangName()}, logs: map[logKey]*rankLog{}, over: make(chan struct{})}
		c.shares = append(c.shares, s)
		for _, r := range n.ranks {
			if err := s.open(a, r.Rank); err != nil {
				c.close()
				return nil, err
			}
		}
		if err := s.said.find(a, n); err != nil {
			s.said.fail(err, emit)
			continue
		}
		s.ask.Ranks, s.ask.Out, s.ask.Err = append(s.ask.Ranks, runtimeRank), append(s.ask.Out, s.said.size), append(s.ask.Err, 0)
	}
	for _, s := range c.shares {
		if s.node.lost != nil {
			continue
		}
		var fetching context.Context
		fetching, s.cancel = context.WithCancelCause(ctx)
		s.node.fetched = s.over
		go s.fetch(fetching, emit) // wait waits for it
	}
	return c, nil
}

// errStalled is why what is on the hosts is waited for no more.
type errStalled struct {
	limit time.Duration
	stuck error // why it cannot be written; nil where it does not come
}

func (e errStalled) Error() string {
	if e.stuck != nil {
		return fmt.Sprintf("it could not be written for %s: %v", e.limit, e.stuck)
	}
	return fmt.Sprintf("nothing more of it has come for %s", e.limit)
}

// wait waits for the rest of a gang that is over, which a host that is lost keeps, for
// as long as some of it comes, or until hurry is closed. Meanwhile it calls watch now
// and then.
func (c *collection) wait(hurry <-chan struct{}, watch func()) {
	slow := time.NewTimer(slowCollect)
	defer slow.Stop()
	tick := time.NewTicker(agents.SuspectEvery)
	defer tick.Stop()
	for _, s := range c.shares {
		s.progress.silence.Silence(time.Now()) // it counts from here
	}
	for _, s := range c.shares {
		for open := true; open; {
			select {
			case <-s.over:
				open = false
			case <-tick.C:
				watch()
				c.giveUp()
			case <-slow.C:
				c.emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: c.attempt.Number, Text: c.slow()})
			case <-hurry:
				hurry = nil
				c.cancel()
			}
		}
	}
	c.close()
}

// giveUp ends the shares of which nothing has come for too long. A host that is silent
// is waited for until it counts as lost.
func (c *collection) giveUp() {
	for _, s := range c.shares {
		if s.node.lost != nil {
			continue
		}
		moved, stuck := s.state()
		if stuck == nil && s.node.agent.Silence() > agents.SuspectAfter {
			moved = time.Now()
		}
		if s.progress.silence.Silence(moved) > c.limit {
			s.cancel(errStalled{c.limit, stuck})
		}
	}
}

// slow words why the run does not end yet.
func (c *collection) slow() string {
	for _, s := range c.shares {
		if _, stuck := s.state(); stuck != nil {
			return fmt.Sprintf("the ranks' output waits on their hosts, since it cannot be written here: %v; free space in %s, or end gangrun with Ctrl-C twice; what does not come for %s stays there",
				stuck, c.attempt.LogDir, c.limit)
		}
	}
	return "the ranks' output is still on its way from their hosts"
}

// keepLimit bounds the wait for an agent's word that it keeps what it has.
const keepLimit = 3 * time.Second

// keep has the agents leave on their hosts what could not come here.
func (c *collection) keep() {
	_ = agents.Each(len(c.shares), func(i int) error {
		s := c.shares[i]
		if !s.end.notWritten || s.node.agent.Silence() > agents.SuspectAfter {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), keepLimit)
		defer cancel()
		_, err := s.node.agent.Client.Keep(ctx, &wire.KeepRequest{})
		s.end.keptForSure = err == nil
		return nil
	})
}

func (c *collection) close() {
	c.cancel()
	for _, s := range c.shares {
		if s.cancel != nil {
			s.cancel(nil)
		}
		for _, log := range s.logs {
			if log.file != nil {
				_ = log.file.Close()
			}
		}
		s.said.close()
	}
}
