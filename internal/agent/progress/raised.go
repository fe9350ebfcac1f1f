package progress

import (
	"bytes"
	"regexp"
	"time"
)

// afterRaise is how long the lines of one exception may follow its first line. The message of an exception may have
// several lines.
const afterRaise = time.Second

// traceback is the line with which Python begins the report of an exception.
var traceback = []byte("Traceback (most recent call last):")

// exceptionLine is the line with the name of an exception.
var exceptionLine = regexp.MustCompile(`^[A-Za-z_][\w.]*(?::|$)`)

// raise finds the exceptions of Python in the lines of one stream. inTrace is true between the first line of a
// traceback and the line with the name of the exception.
type raise struct{ inTrace bool }

// line looks at a line of the stream. now is when the line was read.
func (s *raise) line(p *Rank, line []byte, now time.Time) {
	line = bytes.TrimRight(line, "\r")
	switch {
	case bytes.HasPrefix(line, traceback):
		s.inTrace = true
	case s.inTrace && (len(line) == 0 || line[0] == ' ' || line[0] == '\t'):
	case s.inTrace:
		s.inTrace = false
		if exceptionLine.Match(line) {
			p.raisedAt(now)
		}
	case len(bytes.TrimSpace(line)) > 0:
		p.wentOn(now)
	}
}

// raisedAt records that the rank has printed an exception.
func (p *Rank) raisedAt(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signs.raised = now
}

// wentOn records that the rank has printed a line that does not belong to an exception.
func (p *Rank) wentOn(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.signs.raised) > afterRaise {
		p.signs.raised = time.Time{}
	}
}
