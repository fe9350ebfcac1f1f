package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/finish"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// stream is what one rank wrote to one of its outputs, or one log file.
type stream struct {
	book  *rule.Book
	rank  int
	host  string
	lines []job.Line
	text  []string // of the lines, without the prefixes of launchers
	sign.Found
	// mixed is true if the log has the output of several ranks, and its lines do not say which rank printed them.
	mixed bool
	// common is set if this is the stream of one rank. It has the lines of the same log that name no rank.
	common *stream
	// partners are the other streams of the same member, such as the rank's other output.
	partners []*stream
	// beside are the streams of the same log file, this one included.
	beside []*stream
	reader *outlook.Reader // shared by all streams
	whole  func() *finish.Job
	known  known
}

// known holds what has been found out about a log. It is computed when it is first needed.
type known struct {
	marked *outlook.Log // see log
	laned  bool
	lanes  []int // see ranksOf
	// silent is the last line of the rank that fell silent first.
	silent  int
	closed  bool
	closing int // see closing
}

// streams sorts lines into streams. Their order does not depend on how they were mixed.
func streams(lines []job.Line, book *rule.Book) []*stream {
	type key struct {
		rank       int
		host, file string
		source     job.Source
		// placed is 1 if the line has a place in a log, else 0. If mpirun prints a text for a rank, lines has the text
		// twice: without a place, and with its place in mpirun's log.
		placed int
	}
	byKey := map[key]*stream{}
	reader := &outlook.Reader{}
	var keys []key
	for _, l := range lines {
		if l.Record != nil { // a flight record, see flightrecord.Read
			continue
		}
		k := key{rank: l.Rank, host: l.Host, file: l.File, source: l.Source, placed: min(l.Line, 1)}
		s := byKey[k]
		if s == nil {
			s = &stream{book: book, rank: l.Rank, host: l.Host, reader: reader}
			byKey[k] = s
			keys = append(keys, k)
		}
		s.lines = append(s.lines, l)
		s.text = append(s.text, logtext.Plain(l.Text))
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.host, b.host), cmp.Compare(a.file, b.file), cmp.Compare(a.source, b.source), cmp.Compare(b.placed, a.placed))
	})
	all := make([]*stream, len(keys))
	for i, k := range keys {
		all[i] = byKey[k]
	}
	return all
}

// records reports whether the stream holds records of a host, not output.
func (s *stream) records() bool {
	return len(s.lines) > 0 && (s.lines[0].Source == job.SourceKernel || s.lines[0].Source == job.SourceAgent)
}

// time returns when line i was seen.
func (s *stream) time(i int) time.Time {
	if i < len(s.lines) {
		return s.lines[i].Time
	}
	return time.Time{}
}

// scan finds the signs of a stream. If kernel is true, lines that look like records of a host count as records.
func (s *stream) scan(kernel bool) {
	s.Found = sign.Find(sign.Text{Lines: s.text, Reason: func(i int) job.Reason { return s.lines[i].Reason }, Records: s.records(), Kernel: kernel}, s.book)
}
