package gang

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/internal/agent/stacks"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/wire"
)

// answerStacks answers the controller's requests for the stacks of the ranks, one after the other.
// It returns when ctx ends.
func (g *Gang) answerStacks(ctx context.Context) {
	collector := &stacks.Collector{Host: g.Host, Env: g.Env, Run: g.Children}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), scanLimit)
		defer cancel()
		collector.Close(closing)
	}()
	for {
		select {
		case ask := <-g.inbox.stacks:
			g.answer(ctx, collector, ask)
		case <-ctx.Done():
			return
		}
	}
}

func (g *Gang) answer(ctx context.Context, collector *stacks.Collector, ask *wire.Stacks) {
	var targets []stacks.Target
	for _, r := range g.ranks {
		if pid, ok := r.Living(); ok {
			targets = append(targets, stacks.Target{Rank: r.number, PID: pid, Faults: r.stackFile, Flight: r.flight.Flight})
		}
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(ask.LimitMs)*time.Millisecond)
	defer cancel()
	data, err := exact.Marshal(collector.Collect(limited, targets))
	if err != nil {
		panic("encode stacks: " + err.Error())
	}
	g.Reports.Add(func(m *wire.GangReply) {
		m.Stacks = append(m.Stacks, &wire.StacksReply{Id: ask.Id, Stacks: data})
	})
}
