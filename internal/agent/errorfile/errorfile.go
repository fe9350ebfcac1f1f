// Package errorfile reads the exception that ended a rank from the file that PyTorch writes.
package errorfile

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/recorded"
)

// Env is the name of the environment variable that has the path of the error file. To this file, PyTorch's
// decorator @record writes the exception that ends a rank.
const Env = "TORCHELASTIC_ERROR_FILE"

// Read returns the exception in the error file at path, as the lines of a traceback. It returns
// nil if there is no such file, or if it cannot be read as an error file.
func Read(path, host string, rank int) []job.Line {
	if path == "" {
		return nil
	}
	data, written := readRegular(path, recorded.MaxBytes)
	e, ok := recorded.Parse(data)
	if !ok {
		return nil
	}
	var lines []job.Line
	when := raised(e.Time, written)
	for _, text := range clipped(e.Lines) {
		lines = append(lines, job.Line{
			Source: job.SourceErrorFile, Host: host, Rank: rank, File: path, Time: when, Text: output.Clean([]byte(text)),
		})
	}
	return lines
}

// clipped returns all lines of a traceback. If the traceback is long, clipped returns only its first line, by which it
// is recognized, and its last lines.
func clipped(all []string) []string {
	from, size := len(all)-1, len(all[0])+len(all[len(all)-1])+2
	for from > 1 && size+len(all[from-1])+1 <= output.TailBytes {
		from--
		size += len(all[from]) + 1
	}
	return append(all[:1:1], all[max(from, 1):]...)
}

// raised returns when the exception was raised. from is the time in the file, in whole seconds. If from is zero, raised
// returns written, the time at which the file was written. Otherwise, it returns the time within that second that is
// closest to written.
func raised(from, written time.Time) time.Time {
	to := from.Add(time.Second - time.Nanosecond)
	switch {
	case from.IsZero():
		return written
	case written.Before(from):
		return from
	case written.After(to):
		return to
	}
	return written
}

// readRegular returns the content of a regular file of at most limit bytes, and when it was last written. For any other
// file, it returns nil.
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
