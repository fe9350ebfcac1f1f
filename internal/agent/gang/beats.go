package gang

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/job"
)

const (
	// beatEvery is the time between two looks at the heartbeats of the ranks.
	beatEvery = time.Second
	// unreadTime and unreadLines are the time and the number of lines for which ranks must have printed without
	// progress. After that, the agent reports that the output has no progress.
	unreadTime  = time.Minute
	unreadLines = 100
)

// watchBeats looks at the heartbeats of the ranks until ctx ends. If the output of the ranks has no progress,
// watchBeats reports that once.
func (g *Gang) watchBeats(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	touches := touching{g: g}
	defer touches.wait()
	said := false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			var all []progress.Sample
			for _, r := range g.ranks {
				r.poll()
				all = append(all, r.progress.Sample())
			}
			touches.begin()
			if !said && unread(all, now) {
				said = true
				g.Reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindUnread, Host: g.Host})
			}
		}
	}
}

// unread reports whether ranks have printed lines for a while, but none of the lines was progress.
func unread(all []progress.Sample, now time.Time) bool {
	var first time.Time
	lines := int64(0)
	for _, s := range all {
		if s.Latest != nil || s.Beats > 0 {
			return false
		}
		lines += s.Lines
		if !s.First.IsZero() && (first.IsZero() || s.First.Before(first)) {
			first = s.First
		}
	}
	return lines >= unreadLines && now.Sub(first) >= unreadTime
}

// poll reads the progress that the rank's program has reported through the descriptor of its heartbeats.
func (r *Rank) poll() {
	if r.beats != nil {
		r.beats.Poll()
	}
}

// touching looks at the heartbeat files of a gang. On a file system that hangs, a look may never
// end. In that case, touching does not begin another one.
type touching struct {
	g    *Gang
	done chan struct{} // closed when the look has ended; nil before the first
}

// begin begins a look, unless the previous look has not ended.
func (t *touching) begin() {
	if t.done != nil {
		select {
		case <-t.done:
		default:
			return
		}
	}
	done := make(chan struct{})
	t.done = done
	go func() {
		defer close(done)
		for _, r := range t.g.ranks {
			if r.beats != nil {
				r.beats.Touch()
			}
		}
	}()
}

// wait waits for the end of the last look. If the file system hangs, wait gives up.
func (t *touching) wait() {
	if t.done == nil {
		return
	}
	select {
	case <-t.done:
	case <-time.After(scanLimit):
	}
}
