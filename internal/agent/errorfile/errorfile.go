// Package errorfile reads the exception that ended a rank from the file that PyTorch writes.
package errorfile

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
)

// Env is the variable that names the file to which PyTorch's @record writes the exception that
// ends a rank.
const Env = "TORCHELASTIC_ERROR_FILE"

// errorFileLimit bounds what is read of an error file, in bytes.
const errorFileLimit = 1 << 20

// recorded is an error file, as torch.distributed.elastic writes it.
type recorded struct {
	// Message is an object or, by handlers of before PyTorch 1.9, a text.
	Message   json.RawMessage `json:"message"`
	Timestamp json.RawMessage `json:"timestamp"` // of one whose Message is a text
}

// exception is the object in an error file.
type exception struct {
	Message   string `json:"message"` // as in "ValueError: no such shape"
	ExtraInfo struct {
		Callstack string          `json:"py_callstack"`
		Timestamp json.RawMessage `json:"timestamp"` // seconds of Unix time, a text or a number
	} `json:"extraInfo"`
}

// Read returns the exception in the error file at path, as the lines of a traceback. It returns
// nil if there is no such file, or if it cannot be read as an error file.
func Read(path, host string, rank int) []job.Line {
	if path == "" {
		return nil
	}
	text, written := readRegular(path, errorFileLimit)
	var file recorded
	if text == nil || json.Unmarshal(text, &file) != nil {
		return nil
	}
	var e exception
	stamp := file.Timestamp
	if json.Unmarshal(file.Message, &e.Message) != nil {
		if json.Unmarshal(file.Message, &e) != nil {
			return nil
		}
		stamp = e.ExtraInfo.Timestamp
	}
	var lines []job.Line
	when := raised(stamp, written)
	for _, text := range e.lines() {
		lines = append(lines, job.Line{
			Source: job.SourceErrorFile, Host: host, Rank: rank, File: path, Time: when, Text: output.Clean([]byte(text)),
		})
	}
	return lines
}

// lines returns the traceback, or the message alone where there is none. Of a long traceback it
// returns the first line, by which it is known as one, and the last lines.
func (e exception) lines() []string {
	text := strings.TrimRight(e.ExtraInfo.Callstack, "\n")
	if !strings.HasPrefix(text, "Traceback ") {
		text = strings.TrimRight(e.Message, "\n")
	}
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	from, size := len(all)-1, len(all[0])+len(all[len(all)-1])+2
	for from > 1 && size+len(all[from-1])+1 <= output.TailBytes {
		from--
		size += len(all[from]) + 1
	}
	return append(all[:1:1], all[max(from, 1):]...)
}

// raised returns when the exception was raised: the time in the file, which is in whole seconds,
// or within that second the time at which the file was written.
func raised(stamp json.RawMessage, written time.Time) time.Time {
	seconds, err := strconv.ParseInt(strings.Trim(string(stamp), `"`), 10, 64)
	if err != nil || seconds <= 0 {
		return written
	}
	from := time.Unix(seconds, 0)
	to := from.Add(time.Second - time.Nanosecond)
	switch {
	case written.Before(from):
		return from
	case written.After(to):
		return to
	}
	return written
}

// readRegular returns the content of a regular file of at most limit bytes, and when it was last
// written. It returns nil for any other file.
func readRegular(path string, limit int64) ([]byte, time.Time) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, time.Time{}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, time.Time{}
	}
	text, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return nil, time.Time{}
	}
	return text, info.ModTime()
}
