package launcher

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/stdin"
)

// feed sends standard input to the ranks that the attempt names, until the input ends or ctx ends. If the input can be
// read again or was kept, each attempt gets it from the beginning. Otherwise, feed emits a note.
func (l *Launcher) feed(ctx context.Context, a job.Attempt, nodes []*node, emit func(job.Event)) {
	if l.input == nil || a.Adopt { // the controller that fed the ranks is gone
		return
	}
	var streams []wire.Agent_FeedClient
	var sinks []stdin.Sink
	for _, n := range nodes {
		for _, r := range n.ranks {
			if !a.Stdin.Feeds(r.Rank) {
				continue
			}
			stream, err := n.agent.Client.Feed(ctx)
			if err != nil {
				continue // the agent is lost: the stream of the gang reports that
			}
			gang, rank := a.GangName(), int32(r.Rank)
			// An empty piece tells the agent the rank, even if no data follows.
			_ = stream.Send(&wire.FeedRequest{Gang: gang, Rank: rank})
			streams = append(streams, stream)
			sinks = append(sinks, func(piece []byte) error {
				return stream.Send(&wire.FeedRequest{Gang: gang, Rank: rank, Data: piece})
			})
		}
	}
	if len(streams) == 0 {
		return
	}
	defer func() {
		for _, stream := range streams {
			_ = stream.CloseSend()
		}
	}()
	if missing := l.input.Missing(); missing != "" && a.Number > 1 {
		emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: a.Number, Text: missing})
	}
	l.input.Feed(ctx, a.Trial(), sinks)
}
