package launcher

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// input is gangrun's standard input, which every attempt reads from its beginning: a
// regular file again, and of a pipe what has been kept. It serves one attempt at a time.
type input struct {
	source *os.File
	limit  int64 // bytes of a pipe that are kept
	kind   inputKind
	start  int64    // of a file, where it stood when gangrun was started
	kept   *os.File // what a pipe has given so far; nil before the first piece
	size   int64    // of kept
	tail   []byte   // what comes after kept and could not be written there
	stuck  error    // why no more can be kept; nil while it can
	lost   bool     // some of it was not kept
}

// inputKind is what standard input is.
type inputKind int

const (
	inputFile inputKind = iota
	inputPipe
	inputTerminal // it is not kept: a person types for the gang
)

// newInput returns the input that comes from a file; nil where there is none. Of a pipe at
// most limit bytes are kept for a later attempt.
func newInput(source *os.File, limit int64) *input {
	if source == nil {
		return nil
	}
	in := &input{source: source, limit: limit, kind: inputPipe}
	if _, err := unix.IoctlGetTermios(int(source.Fd()), unix.TCGETS); err == nil {
		in.kind = inputTerminal
	} else if info, err := source.Stat(); err == nil && info.Mode().IsRegular() {
		if in.start, err = source.Seek(0, io.SeekCurrent); err == nil {
			in.kind = inputFile
		}
	}
	return in
}

// read reads what an attempt has not read, which has read the first offset bytes so far.
// It waits within ctx for what is still to come.
func (in *input) read(ctx context.Context, offset int64, buffer []byte) (int, error) {
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

// keep writes down what a pipe has given.
func (in *input) keep(piece []byte) {
	if in.stuck == nil && in.size+int64(len(piece)) > in.limit {
		in.stuck = fmt.Errorf("it is longer than the %d bytes that are kept", in.limit)
	}
	if in.stuck != nil { // a later attempt cannot have all of it
		in.lost = true
		in.close()
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

// unnamed returns a file that goes with this process.
func unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "gangrun-stdin-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// full reports whether nothing more of a pipe can be kept. A trial then waits for the
// rest in vain, and the gang gets all of it.
func (in *input) full(next int) bool {
	return in.kind == inputPipe && (in.stuck != nil || in.size+int64(next) > in.limit)
}

// has returns how many bytes of it can be had again.
func (in *input) has() int64 { return in.size + int64(len(in.tail)) }

func (in *input) close() {
	if in != nil && in.kept != nil {
		_ = in.kept.Close()
		in.kept, in.size, in.tail = nil, 0, nil
	}
}
