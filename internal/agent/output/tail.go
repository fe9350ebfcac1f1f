package output

import (
	"bytes"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// TailBytes is how many bytes of the end of each stream are sent as evidence.
const TailBytes = 32 << 10

// TailLine is the greatest length of one line of evidence, in bytes.
const TailLine = 8 << 10

// Evidence returns the last lines of the stream.
func (s *Stream) Evidence(host string) []job.Line {
	text, number, offset, err := s.tail(TailBytes)
	source := job.SourceStdout
	if s.Stderr {
		source = job.SourceStderr
	}
	if err != nil {
		return []job.Line{{Source: job.SourceAgent, Host: host, Rank: s.Rank, File: s.Path, Text: "read the log: " + err.Error()}}
	}
	var lines []job.Line
	for line := range bytes.Lines(text) {
		lines = append(lines, job.Line{
			Source: source, Host: host, Rank: s.Rank, File: s.Path, Line: number,
			Time: s.when(offset), Text: Clean(line),
		})
		offset += int64(len(line))
		number++
	}
	return lines
}

// Clean returns a line in the form in which gangrun records it: valid UTF-8, without the line end, and at most
// TailLine bytes long. Of a progress bar, only the last state is kept.
func Clean(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	if len(line) > TailLine {
		line = line[:TailLine]
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}
