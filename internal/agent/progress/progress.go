// Package progress finds the progress of a rank in what it prints.
package progress

import (
	"bytes"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/curve"
	"github.com/gangrun/gangrun/internal/job"
)

// scanBytes limits how many bytes at the end of each piece of output are searched for progress. The search begins at
// the start of a line. Because of this limit, gangrun does not slow down a rank that prints much. curve.Parse reads as
// many bytes of a long line.
const scanBytes = 4 << 10

// progressEvery is the time between two reports, after the first steps have been reported.
const progressEvery = time.Second

// Rank is the progress of one rank.
type Rank struct {
	Emit  func(job.Progress)
	Steps int // how many reports are sent immediately; later reports are sent at intervals

	mu       sync.Mutex
	latest   job.Progress
	pending  bool        // latest has not been reported
	timer    *time.Timer // reports latest when it fires; nil if nothing is pending
	finer    bool        // steps have been seen, so lines with only an epoch no longer count
	reported int
	last     time.Time // time of the last report
	lossIs   string    // LossIs of the loss that was reported last
	moved    time.Time // when latest was first seen at its step
	counter  curve.Counter
	told     bool // the program itself has reported its progress, so its output no longer counts
	signs    signs
	beats    *Beats // nil if the program cannot report its progress
}

// signs are signs of life of a rank.
type signs struct {
	moves int64     // how often the step or epoch of the rank has changed
	beats int64     // how often the program has reported its progress, or touched its heartbeat file
	lines int64     // lines that the rank has printed
	first time.Time // when the rank printed its first line
	// raised is when the rank printed an exception of Python. It is zero if the rank has printed more since then.
	raised time.Time
	// history has the newest steps of the rank.
	history history
}

// Sample is what an agent knows about a rank's progress at one moment.
type Sample struct {
	Latest *job.Progress // nil if the rank has shown no progress yet
	Moves  int64         // how often the step or epoch has changed; the first step or epoch counts, too
	// Beats is the sum of two counts: the progress lines that came through GANGRUN_PROGRESS_FD, and the looks
	// at the file of GANGRUN_HEARTBEAT that found it touched since the look before.
	Beats  int64
	Lines  int64     // number of lines that the rank has printed
	First  time.Time // when the first of these lines was printed; zero if there is none
	Raised bool      // the last output is an exception of Python
}

// Sample returns what the agent knows about the rank's progress now.
func (p *Rank) Sample() Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Sample{Moves: p.signs.moves, Beats: p.signs.beats, Lines: p.signs.lines, First: p.signs.first, Raised: !p.signs.raised.IsZero()}
	if !p.moved.IsZero() {
		latest := p.latest
		s.Latest = &latest
	}
	return s
}

// beat records a heartbeat.
func (p *Rank) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signs.beats++
}

// tell records progress that the program itself has reported.
func (p *Rank) tell(found job.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signs.beats++
	if !p.told {
		p.told, p.finer, p.counter = true, false, curve.Counter{}
	}
	p.record(found)
}

// printed records that the rank has printed lines.
func (p *Rank) printed(lines int) {
	if lines == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.signs.lines == 0 {
		p.signs.first = time.Now()
	}
	p.signs.lines += int64(lines)
}

// Scanner cuts one stream of a rank into lines and looks for progress in them. Only the
// goroutine that reads the stream may use it.
type Scanner struct {
	Rank *Rank
	// Pattern matches the lines that show progress. If it is nil, the Scanner looks for the forms that gangrun
	// knows.
	Pattern *curve.Pattern

	reader  curve.Reader
	raise   raise
	partial []byte // the last line, which has not ended yet
}

// Scan searches the next piece of the stream.
func (l *Scanner) Scan(piece []byte) {
	l.Rank.printed(bytes.Count(piece, []byte("\n")))
	l.reader.Pattern = l.Pattern
	if cut := len(piece) - scanBytes; cut > 0 {
		// Skip most of a long piece and search only its end. Start at the beginning of a line, so that no line is read
		// in part. If that line is long, skip the part of it that curve.Parse ignores.
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
		l.raise.line(l.Rank, line, time.Now())
		l.partial, piece = l.partial[:0], piece[i+1:]
	}
	l.partial = append(l.partial, piece...)
	if len(l.partial) > 2*scanBytes {
		l.partial = append(l.partial[:0], l.partial[len(l.partial)-scanBytes-1:]...)
	}
}

// skip ignores the beginning of a piece, and the line in which the beginning ends.
func (l *Scanner) skip(piece []byte) {
	if i := bytes.IndexAny(piece, "\n\r"); i >= 0 {
		l.reader.Skip(append(l.partial, piece[:i]...))
		l.reader.Skip(piece[i:])
	}
	l.partial = l.partial[:0]
}

// add records the progress of a line. It is reported at once if the last report is older than progressEvery. Otherwise,
// it is reported when that time is over, unless a later line replaces it. A loss that becomes infinite or NaN is always
// reported at once.
func (p *Rank) add(found job.Progress) {
	if p.beats != nil {
		p.beats.Poll() // progress that the program has reported before
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told {
		p.record(found)
	}
}

// record records progress. The caller holds p.mu.
func (p *Rank) record(found job.Progress) {
	found = p.counter.Add(found)
	if found.ByEpoch && p.finer {
		if !found.HasLoss() {
			return
		}
		loss, is := found.Loss, found.LossIs
		found = p.latest // the latest progress has the step
		found.Loss, found.LossIs = loss, is
	}
	if p.pending && !found.HasLoss() {
		found.Loss, found.LossIs = p.latest.Loss, p.latest.LossIs
	}
	if p.pending && found.Metrics == nil {
		found.Metrics = p.latest.Metrics
	}
	now := time.Now()
	if p.moved.IsZero() || found.Step != p.latest.Step || found.Epoch != p.latest.Epoch {
		p.moved = now
		p.signs.history.add(now, found.At())
		p.signs.moves++
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

// Flush reports the latest progress if that has not been reported yet. Call it at the end of each stream of the
// rank; after the last call, no timer runs.
func (p *Rank) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending {
		p.report(time.Now())
	}
}

// Idle returns how long before now the rank last made progress. ok is false if it never made progress.
func (p *Rank) Idle(now time.Time) (d time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.moved), !p.moved.IsZero()
}
