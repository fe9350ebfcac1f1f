package curvewatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/metrics"
)

// TestLack: once while the job runs, and at its end, the user is told that the metric that the user has named
// is missing.
func TestLack(t *testing.T) {
	point := func(names ...string) (b batch) {
		for _, n := range names {
			b.points = append(b.points, metrics.Point{Series: n, Step: 1, Value: 1})
		}
		return b
	}
	const during = `no metric "accuracy" was found so far (--metric); seen: loss, lr`
	const end = `no metric "accuracy" was found (--metric); seen: loss, lr`
	const none = `no metric "accuracy" was found (--metric); no other either`
	for _, c := range []struct {
		name     string
		metric   string
		batches  []batch
		progress bool
		good     bool
		after    time.Duration
		want     []string
	}{
		{"never found", "accuracy", []batch{point("loss", "lr")}, false, true, time.Hour, []string{during, end}},
		{"a short job", "accuracy", []batch{point("loss", "lr")}, false, true, 30 * time.Second, []string{end}},
		{"it comes in time", "accuracy", []batch{point("loss", "lr"), point("accuracy")}, false, true, time.Hour, nil},
		{"it is part of a name", "accuracy", []batch{point("val/accuracy")}, false, true, time.Hour, nil},
		{"none is named", "", []batch{point("loss", "lr")}, false, true, time.Hour, nil},
		{"the job says nothing", "accuracy", nil, false, true, time.Hour, []string{none}},
		{"the job fails before it says anything", "accuracy", nil, false, false, time.Hour, nil},
		{"only progress", "accuracy", nil, true, false, time.Hour, []string{`no metric "accuracy" was found so far (--metric); no other either`, none}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := New(nil, Options{Metric: c.metric})
				ctx, cancel := context.WithCancel(t.Context())
				found := make(chan batch)
				told := &told{ranks: map[int]bool{}}
				var watching sync.WaitGroup
				var got []string
				watching.Go(func() {
					w.watch(ctx, job.Attempt{Number: 1}, time.Now(), told, found, func() {}, nil, func(e job.Event) { got = append(got, e.Text) })
				})
				if c.progress {
					told.see(job.Event{Kind: job.KindProgress, Progress: &job.Progress{Step: 1}})
				}
				for _, b := range c.batches {
					found <- b
				}
				time.Sleep(c.after)
				cancel()
				watching.Wait()
				if text := w.lack.atEnd(w.track, c.good); text != "" {
					got = append(got, text)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("told %q, want %q", got, c.want)
				}
			})
		})
	}
}
