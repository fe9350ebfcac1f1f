package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/topology/inventory"
)

// readNamed reads a file that the user has named: up to limit bytes and one more. It may
// be a pipe, as /dev/stdin or the <(...) of a shell. A signal ends the wait for its
// writer, and gangrun with it.
func readNamed(path string, limit int64) ([]byte, error) {
	ctx, stop := context.Background(), func() {}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		ctx, stop = leaving()
	}
	defer stop()
	text, err := safefile.ReadStream(ctx, path, limit, func(mode fs.FileMode) {
		fmt.Fprintf(os.Stderr, "gangrun: note: waiting for what is written to %q, which is %s\n", path, safefile.Kind(mode))
	})
	var left leave
	if errors.As(err, &left) {
		return nil, failure.Exit(128 + int(left.signal))
	}
	return text, err
}

// readHostFile reads a list of hosts for mpiexec, of at most inventory.MaxSize bytes.
func readHostFile(path string) ([]byte, error) {
	text, err := readNamed(path, inventory.MaxSize)
	if err == nil && len(text) > inventory.MaxSize {
		return nil, &safefile.SizeError{Path: path, Limit: inventory.MaxSize}
	}
	return text, err
}
