package progress

import (
	"bytes"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/curve"
	"github.com/gangrun/gangrun/internal/job"
)

// scanBytes is how much of the end of each piece of output is searched for
// progress, beside the beginning of its first line: a rank that floods its log
// does not pay for the search. It is what curve.Parse looks at of a long line.
const scanBytes = 4 << 10

// progressEvery is how often progress is reported once the first steps were.
const progressEvery = time.Second

// Rank is how far one rank is, by what it prints.
type Rank struct {
	Emit  func(job.Progress)
	Steps int // reports that are made at once

	mu       sync.Mutex
	latest   job.Progress
	pending  bool        // latest has not been reported
	timer    *time.Timer // reports latest when its time has come; nil while nothing is pending
	finer    bool        // steps have been seen: lines that count epochs say less
	reported int
	last     time.Time // of a report
	lossIs   string    // LossIs of the last loss that was reported
	moved    time.Time // when latest was first seen at its step
}

// Scanner cuts one stream of a rank into lines and looks for progress in them.
// It is for the goroutine that reads the stream.
type Scanner struct {
	Rank    *Rank
	reader  curve.Reader
	partial []byte // the line that has not ended
}

// Scan looks at the next piece of the stream.
func (l *Scanner) Scan(piece []byte) {
	if cut := len(piece) - scanBytes; cut > 0 {
		// From the beginning of a line, or so far before its end that Parse does
		// not look at what is left out.
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

// skip passes over the beginning of a piece. No line goes on behind it.
func (l *Scanner) skip(piece []byte) {
	if i := bytes.IndexAny(piece, "\n\r"); i >= 0 {
		l.reader.Skip(append(l.partial, piece[:i]...))
		l.reader.Skip(piece[i:])
	}
	l.partial = l.partial[:0]
}

// add takes in what a line tells. It is reported at once, or when
// progressEvery has passed since the last report: then only if no later line
// has told more. A loss that has just become infinite, or no number, does not
// wait.
func (p *Rank) add(found job.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found.ByEpoch && p.finer {
		if !found.HasLoss() {
			return
		}
		loss, is := found.Loss, found.LossIs
		found = p.latest // tells the step
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

// Flush reports the last progress, if it has not been. Once every stream of the
// rank has ended and been flushed, no timer is left.
func (p *Rank) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending {
		p.report(time.Now())
	}
}

// Idle returns for how long the rank had made no progress at the time now, and
// whether it had made any before.
func (p *Rank) Idle(now time.Time) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.moved), !p.moved.IsZero()
}
