package checkpoint

import (
	"bufio"
	"context"
	"io"
)

// file is what is being verified: a file, or a piece of one. Reading it fails
// once ctx has ended.
type file struct {
	ctx  context.Context
	r    io.ReaderAt
	size int64
}

// ReadAt reads like io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.r.ReadAt(p, off)
}

// piece returns n bytes from off on as a file of its own.
func (f *file) piece(off, n int64) *file {
	return &file{f.ctx, io.NewSectionReader(f, off, n), n}
}

// stream reads a file from some offset on.
type stream struct {
	*bufio.Reader
	section *io.SectionReader
	start   int64
}

// from returns a reader of everything from off on.
func (f *file) from(off int64) *stream {
	s := io.NewSectionReader(f, off, f.size-off)
	return &stream{bufio.NewReaderSize(s, 64<<10), s, off}
}

// pos returns the offset of the next byte that is read.
func (s *stream) pos() int64 {
	read, err := s.section.Seek(0, io.SeekCurrent)
	if err != nil {
		panic(err) // a SectionReader knows where it is
	}
	return s.start + read - int64(s.Buffered())
}

// bytes returns the n bytes at off.
func (f *file) bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > f.size-n {
		return nil, io.ErrUnexpectedEOF
	}
	p := make([]byte, n)
	if m, err := f.ReadAt(p, off); int64(m) < n {
		return nil, err
	}
	return p, nil
}
