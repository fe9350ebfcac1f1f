// Package namedfile reads files that the user has named on the command line or in a job file.
// Such a file may be a pipe.
package namedfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Read returns the content of a file of up to limit bytes. If the file is longer, Read returns its
// first limit+1 bytes. The file may be a pipe, such as /dev/stdin or the <(...) of a shell: Read
// then prints a note while it waits for the writer. If a signal ends that wait, the error has the
// exit code with which this process should end.
func Read(path string, limit int64) ([]byte, error) {
	ctx, stop := context.Background(), func() {}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		ctx, stop = interrupt.Context()
	}
	defer stop()
	text, err := safefile.ReadStream(ctx, path, limit, func(mode fs.FileMode) {
		fmt.Fprintf(os.Stderr, "gangrun: note: waiting for what is written to %q, which is %s\n", path, safefile.Kind(mode))
	})
	var s interrupt.Signal
	if errors.As(err, &s) {
		return nil, failure.Exit(128 + int(s.Number))
	}
	return text, err
}

// ReadBounded is like Read, but returns a *safefile.SizeError if the file is longer than limit
// bytes.
func ReadBounded(path string, limit int64) ([]byte, error) {
	text, err := Read(path, limit)
	if err == nil && int64(len(text)) > limit {
		return nil, &safefile.SizeError{Path: path, Limit: limit}
	}
	return text, err
}
