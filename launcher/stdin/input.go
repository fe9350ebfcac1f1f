// Package stdin reads the standard input of gangrun and sends it to ranks. If the standard input is a pipe, the
// package keeps the data for later attempts.
package stdin

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Input is gangrun's standard input. Each attempt reads it from the beginning. If it is a
// regular file, the attempt reads the file again. If it is a pipe, the attempt reads the data
// that was kept. Only one attempt at a time can read the Input.
type Input struct {
	source *os.File
	limit  int64 // how many bytes of a pipe are kept at most
	kind   inputKind
	start  int64    // for a file: the offset when gangrun was started
	kept   *os.File // what was read from a pipe so far; nil before the first piece
	size   int64    // number of bytes in kept
	tail   []byte   // data that follows kept, but could not be written to it
	stuck  error    // why no more data can be kept; nil while more can
	lost   bool     // some data was not kept
}

// inputKind is what standard input is.
type inputKind int

const (
	inputFile inputKind = iota
	inputPipe
	inputTerminal // a person types it, so it is not kept
)

// New returns the Input that reads source, or nil if source is nil. It keeps at most limit
// bytes of a pipe for later attempts.
func New(source *os.File, limit int64) *Input {
	if source == nil {
		return nil
	}
	in := &Input{source: source, limit: limit, kind: inputPipe}
	if _, err := unix.IoctlGetTermios(int(source.Fd()), unix.TCGETS); err == nil {
		in.kind = inputTerminal
	} else if info, err := source.Stat(); err == nil && info.Mode().IsRegular() {
		if in.start, err = source.Seek(0, io.SeekCurrent); err == nil {
			in.kind = inputFile
		}
	}
	return in
}

// read reads the input from offset on, for an attempt that has read the bytes before offset. It waits for input until
// ctx ends.
func (in *Input) read(ctx context.Context, offset int64, buffer []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	switch {
	case in.kind == inputFile:
		n, err := in.source.ReadAt(buffer, in.start+offset)
		if n > 0 {
			err = nil
		}
		return n, err
	case !in.lost && offset < in.size:
		return in.kept.ReadAt(buffer[:min(int64(len(buffer)), in.size-offset)], offset)
	case !in.lost && offset < in.size+int64(len(in.tail)):
		return copy(buffer, in.tail[offset-in.size:]), nil
	}
	n, err := readReady(ctx, in.source, buffer)
	if n > 0 && in.kind == inputPipe && !in.lost {
		in.keep(buffer[:n])
	}
	return n, err
}

// keep keeps a piece that was read from a pipe.
func (in *Input) keep(piece []byte) {
	if in.stuck == nil && in.size+int64(len(piece)) > in.limit {
		in.stuck = fmt.Errorf("it is longer than the %d bytes that are kept", in.limit)
	}
	if in.stuck != nil { // a later attempt cannot get all of the input
		in.lost = true
		in.Close()
		return
	}
	if in.kept == nil {
		in.kept, in.stuck = unnamed()
	}
	n := 0
	if in.stuck == nil {
		n, in.stuck = in.kept.WriteAt(piece, in.size)
	}
	in.size += int64(n)
	in.tail = slices.Clone(piece[n:])
}

// unnamed returns a file without a name. The file disappears with this process.
func unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "gangrun-stdin-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// full reports whether the next bytes of a pipe could not be kept. A trial does not get these bytes, so that the gang
// gets all of the input.
func (in *Input) full(next int) bool {
	return in.kind == inputPipe && (in.stuck != nil || in.size+int64(next) > in.limit)
}

// has returns how many bytes of the input can be read again.
func (in *Input) has() int64 { return in.size + int64(len(in.tail)) }

// Close discards the data that was kept. It may be called on a nil Input.
func (in *Input) Close() {
	if in != nil && in.kept != nil {
		_ = in.kept.Close()
		in.kept, in.size, in.tail = nil, 0, nil
	}
}
