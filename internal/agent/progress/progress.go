// Package progress finds the progress of a rank in what it prints.
package progress

import (
	"bytes"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/curve"
	"github.com/gangrun/gangrun/internal/job"
)

// scanBytes is how many bytes at the end of each piece of output are searched for progress,
// besides the rest of the line that they begin in: the search must not slow down a rank that
// prints much. curve.Parse looks at as much of a long line.
const scanBytes = 4 << 10

// progressEvery is the time between two reports, once the first steps have been reported.
const progressEvery = time.Second

// Rank is the progress of one rank.
type Rank struct {
	Emit  func(job.Progress)
	Steps int // how many reports are sent immediately; later ones are sent once per progressEvery

	mu       sync.Mutex
	latest   job.Progress
	pending  bool        // latest has not been reported
	timer    *time.Timer // reports latest when its time has come; nil while nothing is pending
	finer    bool        // steps have been seen: lines that only count epochs do not replace them
	reported int
	last     time.Time // of a report
	lossIs   string    // LossIs of the last loss that was reported
	moved    time.Time // when latest was first seen at its step
}

// Scanner cuts one stream of a rank into lines and looks for progress in them. Only the
// goroutine that reads the stream may use it.
type Scanner struct {
	Rank    *Rank
	reader  curve.Reader
	partial []byte // the line that has not ended
}

// Scan looks at the next piece of the stream.
func (l *Scanner) Scan(piece []byte) {
	if cut := len(piece) - scanBytes; cut > 0 {
		// From the beginning of a line, or from so far before its end that
		// curve.Parse ignores what is left out.
		from := max(0, cut-scanBytes-1)
		if i := bytes.LastIndexAny(piece[from:cut], "\n\r"); i >= 0 {
			from += i + 1
		}
		if from > 0 {
			l.skip(piece[:from])
		}
		piece = piece[from:]
	}
	for {
		i := bytes.IndexAny(piece, "\n\r")
		if i < 0 {
			break
		}
		line := piece[:i]
		if len(l.partial) > 0 {
			l.partial = append(l.partial, line...)
			line = l.partial
		}
		if found, ok := l.reader.Line(line); ok {
			l.Rank.add(found)
		}
		l.partial, piece = l.partial[:0], piece[i+1:]
	}
	l.partial = append(l.partial, piece...)
	if len(l.partial) > 2*scanBytes {
		l.partial = append(l.partial[:0], l.partial[len(l.partial)-scanBytes-1:]...)
	}
}

// skip passes over the beginning of a piece. The line that it ends in is dropped.
func (l *Scanner) skip(piece []byte) {
	if i := bytes.IndexAny(piece, "\n\r"); i >= 0 {
		l.reader.Skip(append(l.partial, piece[:i]...))
		l.reader.Skip(piece[i:])
	}
	l.partial = l.partial[:0]
}

// add records the progress of a line. It is reported at once, or once progressEvery has passed
// since the last report; a later line may replace it until then. A loss that has just become
// infinite or NaN is reported at once.
func (p *Rank) add(found job.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found.ByEpoch && p.finer {
		if !found.HasLoss() {
			return
		}
		loss, is := found.Loss, found.LossIs
		found = p.latest // has the step
		found.Loss, found.LossIs = loss, is
	}
	if p.pending && !found.HasLoss() {
		found.Loss, found.LossIs = p.latest.Loss, p.latest.LossIs
	}
	now := time.Now()
	if p.moved.IsZero() || found.Step != p.latest.Step || found.Epoch != p.latest.Epoch {
		p.moved = now
	}
	p.latest, p.pending, p.finer = found, true, p.finer || !found.ByEpoch
	wait := p.last.Add(progressEvery).Sub(now)
	switch {
	case p.reported < p.Steps, wait <= 0, found.LossIs != "" && found.LossIs != p.lossIs:
		p.report(now)
	case p.timer == nil:
		p.timer = time.AfterFunc(wait, p.Flush)
	}
}

func (p *Rank) report(now time.Time) {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.pending, p.last = false, now
	p.reported++
	if p.latest.HasLoss() {
		p.lossIs = p.latest.LossIs
	}
	p.Emit(p.latest)
}

// Flush reports the latest progress if it has not been reported. Once every stream of the rank
// has ended and been flushed, no timer is left.
func (p *Rank) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending {
		p.report(time.Now())
	}
}

// Idle returns how long the rank has made no progress at the time now. ok is false if it has
// made none at all.
func (p *Rank) Idle(now time.Time) (d time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.moved), !p.moved.IsZero()
}
