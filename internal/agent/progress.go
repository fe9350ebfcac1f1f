package agent

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

// progress finds progress lines in one stream.
type progress struct {
	emit  func(job.Progress)
	steps int // reports that are made at once

	mu       sync.Mutex
	partial  []byte // the line that has not ended
	latest   job.Progress
	pending  bool // latest has not been reported
	finer    bool // steps have been seen: lines that count epochs say less
	reported int
	last     time.Time
}

// scan looks at the next piece of the stream.
func (p *progress) scan(piece []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cut := len(piece) - scanBytes; cut > 0 {
		// From the beginning of a line, or so far before its end that Parse does
		// not look at what is left out.
		from := max(0, cut-scanBytes-1)
		if i := bytes.LastIndexAny(piece[from:cut], "\n\r"); i >= 0 {
			from += i + 1
		}
		if from > 0 {
			p.partial = p.partial[:0]
		}
		piece = piece[from:]
	}
	for {
		i := bytes.IndexAny(piece, "\n\r")
		if i < 0 {
			break
		}
		line := piece[:i]
		if len(p.partial) > 0 {
			p.partial = append(p.partial, line...)
			line = p.partial
		}
		p.line(line)
		p.partial, piece = p.partial[:0], piece[i+1:]
	}
	p.partial = append(p.partial, piece...)
	if len(p.partial) > 2*scanBytes {
		p.partial = append(p.partial[:0], p.partial[len(p.partial)-scanBytes-1:]...)
	}
}

func (p *progress) line(line []byte) {
	found, ok := curve.Parse(line)
	if !ok || found.ByEpoch && p.finer {
		return
	}
	p.finer = p.finer || !found.ByEpoch
	p.latest, p.pending = found, true
	if now := time.Now(); p.reported < p.steps || now.Sub(p.last) >= progressEvery {
		p.report(now)
	}
}

func (p *progress) report(now time.Time) {
	p.pending, p.last = false, now
	p.reported++
	p.emit(p.latest)
}

// flush reports the last progress, if it has not been.
func (p *progress) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending {
		p.report(time.Now())
	}
}
