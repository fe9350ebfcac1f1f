package launcher

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// shows returns the ranks whose output is shown while the gang runs.
func shows(mode job.OutputMode, ranks []job.Rank) []int32 {
	var shown []int32
	for _, r := range ranks {
		if mode == job.OutputAll || mode == job.OutputFirst && r.Rank == 0 {
			shown = append(shown, int32(r.Rank))
		}
	}
	return shown
}

// showing returns, for each node, a request for the output that is shown. The request is nil if no output of the node
// is shown. For an adopted gang, the request is for the output that is not in the logs yet. So showing must be called
// before more is written to the logs.
func (l *Launcher) showing(a job.Attempt, nodes []*node) []*wire.OutputRequest {
	asks := make([]*wire.OutputRequest, len(nodes))
	for i, n := range nodes {
		ranks := shows(a.Show, n.ranks)
		if len(ranks) == 0 || l.opts.Output == nil || n.lost != nil {
			continue
		}
		asks[i] = &wire.OutputRequest{Gang: a.GangName(), Ranks: ranks}
		if a.Adopt { // the earlier controller has shown the output that is in the logs
			for _, r := range ranks {
				asks[i].Out, asks[i].Err = append(asks[i].Out, printed(a, r, "out")), append(asks[i].Err, printed(a, r, "err"))
			}
		}
	}
	return asks
}

// show passes on the output of an attempt after the output of earlier attempts. It closes the channel when all output
// has been passed on.
func (l *Launcher) show(asks []*wire.OutputRequest, nodes []*node) <-chan struct{} {
	done := make(chan struct{})
	l.mu.Lock()
	before := l.shown
	l.shown = done
	l.mu.Unlock()
	var one sync.Mutex
	var wg sync.WaitGroup
	for i, n := range nodes {
		if asks[i] == nil {
			continue
		}
		wg.Go(func() {
			stream, err := n.agent.Client.Output(l.life, asks[i])
			if err != nil {
				return // the agent is lost: the stream of the gang reports that
			}
			select {
			case <-before:
			case <-l.life.Done():
				return
			}
			for {
				reply, err := stream.Recv()
				if err != nil {
					return // io.EOF, or the agent is lost
				}
				one.Lock()
				l.opts.Output(job.Output{Rank: int(reply.Rank), Host: n.agent.Host, Stderr: reply.Stderr, Data: reply.Data, End: reply.End})
				one.Unlock()
			}
		})
	}
	go func() {
		wg.Wait()
		<-before
		close(done)
	}()
	return done
}

// printed returns the size of a rank's log.
func printed(a job.Attempt, rank int32, stream string) int64 {
	info, err := os.Stat(filepath.Join(a.LogDir, job.LogName(int(rank), stream)))
	if err != nil {
		return 0
	}
	return info.Size()
}

// showLimit is how long the end of an attempt waits until the output of the attempt is shown. If the terminal takes
// longer, the run goes on.
const showLimit = 500 * time.Millisecond

// shownSoon waits until done is closed, but at most for showLimit.
func shownSoon(ctx context.Context, done <-chan struct{}) {
	limit := time.NewTimer(showLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	case <-ctx.Done():
	}
}
