package diagnose

import (
	"cmp"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/job"
)

// How many lines of a long block are evidence (its first and its last), how many lines are shown before a sign of one
// line, and how many with an end that has no sign.
const (
	headLines = 10
	tailLines = 30
	nearLines = 3
	lastLines = 5
)

// afterLines is how many lines after the decisive line are kept.
const afterLines = 20

// after returns the lines that follow the decisive line in its stream.
func (s *suspect) after() []job.Line {
	if s.stream == nil {
		return nil
	}
	lines := s.stream.lines[s.sign.At+1:]
	lines = lines[:min(len(lines), afterLines)]
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1].Text) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// evidence returns the lines that prove a suspect. The decisive line comes last, and a record that explains it comes
// after.
func (s *suspect) evidence() []job.Line {
	var lines []job.Line
	switch {
	case s.stream != nil && s.sign.At > s.sign.From:
		lines = s.stream.lines[s.sign.From : s.sign.At+1]
		if len(lines) > headLines+tailLines {
			lines = append(lines[:headLines:headLines], lines[len(lines)-tailLines:]...)
		}
	case s.stream != nil:
		lines = append(logtext.LastOf(s.stream.lines[:s.sign.At], nearLines), s.stream.lines[s.sign.At])
	case s.exit != nil:
		if st := s.words(); st != nil {
			lines = logtext.LastOf(st.lines, lastLines)
		}
		lines = append(lines, job.Line{Source: job.SourceAgent, Host: s.host, Rank: s.rank, Time: s.exit.Time, Text: s.exit.String()})
	}
	if s.record != nil {
		lines = append(lines[:len(lines):len(lines)], *s.record)
	}
	if lines == nil {
		lines = []job.Line{}
	}
	return lines
}

// lastWords returns the last line of the rank's output that no launcher has printed.
func (s *suspect) lastWords() string {
	st := s.words()
	if st == nil || st.rank < 0 {
		return ""
	}
	return logtext.Short(message.Last(st.text), 120)
}

// words returns the stream with the rank's last words: stderr, or stdout if only launchers wrote to stderr.
func (s *suspect) words() *stream {
	var best *stream
	rank := func(st *stream) int {
		if st.lines[0].Source == job.SourceStderr {
			return 0
		}
		return 1
	}
	if s.member == nil {
		return nil
	}
	for _, st := range s.member.streams {
		if message.Last(st.text) == "" {
			continue
		}
		if best == nil || cmp.Less(rank(st), rank(best)) {
			best = st
		}
	}
	return best
}
