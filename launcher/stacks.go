package launcher

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// stacksLate is how much longer than its time limit the controller waits for the answer of an agent.
const stacksLate = 2 * time.Second

// Stacks collects the stacks of the ranks of the running gang. Each host must answer within limit. The result
// lacks the ranks of hosts that do not answer in time. Stacks returns nil if no gang runs.
func (l *Launcher) Stacks(ctx context.Context, limit time.Duration) []job.RankStack {
	ctx, cancel := context.WithTimeout(ctx, limit+2*stacksLate)
	defer cancel()
	ask := stacksAsk{limit, make(chan []job.RankStack, 1)}
	select {
	case l.orders.stacks <- ask:
	case <-ctx.Done():
		return nil
	}
	select {
	case found := <-ask.found:
		return found
	case <-ctx.Done():
		return nil
	}
}

// stacksAsks has the requests for stacks that are not yet answered.
type stacksAsks struct {
	asked map[int64]*stacksAsked
	last  int64 // the newest key in asked
}

// stacksAsk is a call of Stacks.
type stacksAsk struct {
	limit time.Duration
	found chan []job.RankStack // has room for the one answer
}

// stacksAsked is a request that some hosts have not answered yet.
type stacksAsked struct {
	stacksAsk
	waiting map[*node]bool
	all     []job.RankStack
	until   time.Time
}

// askStacks asks all hosts for the stacks of their ranks.
func (g *running) askStacks(ask stacksAsk) {
	g.stacks.last++
	asked := &stacksAsked{stacksAsk: ask, waiting: map[*node]bool{}, until: time.Now().Add(ask.limit + stacksLate)}
	for _, n := range g.nodes {
		if n.done || !n.gone.IsZero() {
			continue
		}
		asked.waiting[n] = true
		n.send(&wire.GangRequest{Kind: &wire.GangRequest_Stacks{Stacks: &wire.Stacks{Id: g.stacks.last, LimitMs: ask.limit.Milliseconds()}}})
	}
	g.stacks.asked[g.stacks.last] = asked
	g.answerStacks(time.Now())
}

// takeStacks handles the answer of a host.
func (g *running) takeStacks(n *node, reply *wire.StacksReply) {
	asked := g.stacks.asked[reply.Id]
	if asked == nil || !asked.waiting[n] {
		return // the answer comes too late
	}
	delete(asked.waiting, n)
	var found []job.RankStack
	if exact.Unmarshal(reply.Stacks, &found) == nil {
		asked.all = append(asked.all, found...)
	}
}

// answerStacks answers the calls of Stacks for which all hosts have answered or the time is over.
func (g *running) answerStacks(now time.Time) {
	for id, asked := range g.stacks.asked {
		for n := range asked.waiting {
			if n.done || !n.gone.IsZero() {
				delete(asked.waiting, n)
			}
		}
		if len(asked.waiting) == 0 || now.After(asked.until) {
			delete(g.stacks.asked, id)
			asked.found <- asked.all
		}
	}
}
