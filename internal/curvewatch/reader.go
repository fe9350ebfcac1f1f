package curvewatch

import (
	"context"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/metrics"
)

const (
	// busy is the maximum time that a reader works in each look, so that it costs little even if a job prints
	// much.
	busy = 200 * time.Millisecond
	// calm is the time from the beginning of an attempt to the first look. A job that ends earlier has no curve
	// to judge, and so is not delayed by a search.
	calm = 300 * time.Millisecond
	// maxBatch is the maximum number of points of a file in one batch.
	maxBatch = 1024
)

// source is a file whose metrics are read.
type source struct {
	name string
	file *metrics.File
	read time.Time // when the end of the file was last reached; zero if it was never reached
	// step is the last step of a trainer_state.json, which the job writes anew each time.
	step int64
}

// batch has points of one source that came between two times.
type batch struct {
	source   string
	points   []metrics.Point
	total    int64
	from, to time.Time
}

// time returns when a point was reported. It takes the time in the file if that is possible. Otherwise it
// spreads the points evenly.
func (b batch) time(i int, began time.Time) time.Time {
	if p := b.points[i]; p.Time > 1e9 {
		at := time.Unix(0, int64(p.Time*1e9))
		if !at.Before(began) && !at.After(b.to) {
			return at
		}
	}
	return b.from.Add(b.to.Sub(b.from) * time.Duration(i+1) / time.Duration(len(b.points)))
}

// reader reads some files from time to time. It may block while their file system blocks.
type reader struct {
	from  time.Time // when the attempt began
	files func(context.Context) []*source
}

// run reads until ctx ends, and sends the points to found.
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

// read reads what was added to a file. It stops when short ends.
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
