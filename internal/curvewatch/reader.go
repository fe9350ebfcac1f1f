package curvewatch

import (
	"context"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/metrics"
)

const (
	// busy limits the time that a reader works in each look, so that a job that prints much costs little.
	busy = 200 * time.Millisecond
	// calm is the time from the beginning of an attempt to the first look. A job that ends sooner has no curve to
	// judge, and takes no time for a search.
	calm = 300 * time.Millisecond
	// maxBatch limits how many points of a file are passed on at once.
	maxBatch = 1024
)

// source is a file whose metrics are read.
type source struct {
	name string
	file *metrics.File
	read time.Time // when the end of the file was last reached; zero if it was never reached
	// step is the last step of a trainer_state.json. Such a file is written anew each time.
	step int64
}

// batch has points of one source that were reported between two times.
type batch struct {
	source   string
	points   []metrics.Point
	total    int64
	from, to time.Time
}

// time returns when a point was reported. It is the time in the file, if that can be right. Otherwise, the points are
// evenly spread over the time of the batch.
func (b batch) time(i int, began time.Time) time.Time {
	if p := b.points[i]; p.Time > 1e9 {
		at := time.Unix(0, int64(p.Time*1e9))
		if !at.Before(began) && !at.After(b.to) {
			return at
		}
	}
	return b.from.Add(b.to.Sub(b.from) * time.Duration(i+1) / time.Duration(len(b.points)))
}

// reader reads some files from time to time. It may block as long as their file system does.
type reader struct {
	from  time.Time // when the attempt began
	files func(context.Context) []*source
}

// run reads until ctx ends, and passes on the points that it finds.
func (r *reader) run(ctx context.Context, found chan<- batch) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	select {
	case <-time.After(calm):
	case <-ctx.Done():
		return
	}
	for {
		short, cancel := context.WithTimeout(ctx, busy)
		for _, s := range r.files(short) {
			r.read(ctx, short, s, found)
		}
		cancel()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// read reads what was added to a file, until short ends.
func (r *reader) read(ctx, short context.Context, s *source, found chan<- batch) {
	from, now := s.read, time.Now()
	if from.IsZero() {
		from = r.from
	}
	var points []metrics.Point
	send := func() {
		b := batch{source: s.name, points: points, total: s.file.Total(), from: from, to: now}
		points = nil
		select {
		case found <- b:
		case <-ctx.Done():
		}
	}
	err := s.file.Poll(short, func(p metrics.Point) {
		if s.file.Format() == metrics.HFState && p.Step <= s.step {
			return
		}
		if points = append(points, p); len(points) == maxBatch {
			send()
		}
	})
	if len(points) > 0 {
		s.step = max(s.step, slices.MaxFunc(points, func(a, b metrics.Point) int { return int(max(-1, min(1, a.Step-b.Step))) }).Step)
		send()
	}
	if err == nil && short.Err() == nil {
		s.read = now
	}
}
