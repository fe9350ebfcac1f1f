package journal

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// MaxSize limits the size of a journal that Replay reads, in bytes. It is enough for some million events. A run of
// 1,000 ranks has some ten thousand events.
const MaxSize = 1 << 30

// Replay returns the events of the journal at path, and the number of lines that could not be
// read. It does not count a truncated last line: the writer was killed, or is still writing
// that line. Replay keeps events of unknown kinds, and ignores unknown fields. It returns an
// error for a journal of more than MaxSize bytes.
func Replay(path string) (events []job.Event, skipped int, err error) {
	file, err := safefile.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the journal: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the journal: %w", err)
	}
	if info.Size() > MaxSize {
		return nil, 0, fmt.Errorf("cannot read the journal: %w", &safefile.SizeError{Path: path, Limit: MaxSize})
	}
	// Lines that are appended from now on are not read, because a writer may be faster than this reader.
	skipped, err = Scan(io.NewSectionReader(file, 0, info.Size()), func(e job.Event) bool {
		events = append(events, e)
		return true
	})
	if err != nil {
		err = fmt.Errorf("cannot read the journal: %w", err)
	}
	return events, skipped, err
}

// Scan calls emit for every event in r until emit returns false. skipped is the number of lines
// that could not be read, as in Replay. The error is the one that r returns.
func Scan(r io.Reader, emit func(job.Event) bool) (skipped int, err error) {
	lines := newLines(r)
	for {
		line, whole, err := lines.next()
		if err == io.EOF {
			return skipped, nil
		}
		if err != nil {
			return skipped, err
		}
		e, ok := parse(line)
		switch {
		case ok && !emit(e):
			return skipped, nil
		case !ok && whole && len(line) != 0:
			skipped++
		}
	}
}

// parse reports whether line is an event. A truncated line is never an event, because no proper prefix of a JSON object
// is a JSON object.
func parse(line []byte) (job.Event, bool) {
	var e job.Event
	err := exact.Unmarshal(line, &e)
	if e.Kind == job.KindStop && e.Stop == "" {
		e.Stop = oldStop(e.Text)
	}
	return e, err == nil && e.Kind != ""
}

// oldStop returns the reason to end a gang for an event that has no Stop. It finds the reason in the text of the event.
// Older versions wrote such events, and their runs may be taken over. No other code may depend on this text.
func oldStop(text string) job.StopReason {
	switch {
	case text == "gangrun was told to end the gang at once":
		return job.StopHurry
	case strings.HasPrefix(text, "gangrun was told to end the gang"):
		return job.StopOrder
	}
	return job.StopFailure
}

// tooLong takes the place of a line that is longer than MaxLine.
var tooLong = []byte("-")

// lines cuts a stream into lines. It stores MaxLine bytes at most.
type lines struct {
	r    *bufio.Reader
	long []byte
	read int64 // bytes of the whole lines that were returned so far
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line without its end. The line is valid until the next call. whole is false if the line is the
// last one and has no end. At the end of the stream, the error is io.EOF.
func (l *lines) next() (line []byte, whole bool, err error) {
	l.long = l.long[:0]
	var n int64
	for {
		piece, err := l.r.ReadSlice('\n')
		n += int64(len(piece))
		switch err {
		case nil:
			l.read += n
			if n > MaxLine {
				return tooLong, true, nil
			}
			line := piece
			if len(l.long) > 0 {
				l.long = append(l.long, piece...)
				line = l.long
			}
			return bytes.TrimSuffix(line, []byte("\n")), true, nil
		case bufio.ErrBufferFull:
			if n <= MaxLine {
				l.long = append(l.long, piece...)
			}
		case io.EOF:
			if n == 0 {
				return nil, false, io.EOF
			}
			if n > MaxLine {
				return tooLong, false, nil
			}
			return append(l.long, piece...), false, nil
		default:
			return nil, false, err
		}
	}
}
