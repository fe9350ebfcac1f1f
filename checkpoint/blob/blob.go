// Package blob reads the files of a checkpoint, or pieces of them, and keeps what was noticed in them.
package blob

import (
	"bufio"
	"context"
	"io"
)

// File is what is being verified: a file, or a piece of one. Reading it fails
// once Ctx has ended.
type File struct {
	Ctx  context.Context
	R    io.ReaderAt
	Size int64 // in bytes
	// Seen collects what is noticed beside flaws. It may be nil.
	Seen *Seen
}

// Seen is what was noticed in the files of a checkpoint beside their flaws. The methods
// of a nil Seen do nothing.
type Seen struct {
	// Deep says that the numbers of tensors are to be looked at.
	Deep bool
	// Unsummed says that the checksums of an archive were not computed when it was written.
	Unsummed bool
	// Doubt is why the checkpoint is taken only if there is nothing better. It may be empty.
	Doubt string
	// WeightsOnly says that Doubt is that a job cannot resume from the checkpoint, but only
	// load its weights.
	WeightsOnly bool
	// Numbers are the numbers of tensors.
	Numbers Numbers
}

// Numbers is what was found in the tensors of a checkpoint.
type Numbers struct {
	Scanned int64 // numbers
	NaN     int64 // of them
	PosInf  int64
	NegInf  int64
	// First is the first tensor with NaN or +Inf, or without those the first with -Inf.
	First string
	// Skipped is the number of tensors of numbers that could not be looked at.
	Skipped int64
}

// IsDeep reports whether the numbers of tensors are to be looked at.
func (s *Seen) IsDeep() bool { return s != nil && s.Deep }

// NoteUnsummed notes that an archive has no checksums.
func (s *Seen) NoteUnsummed() {
	if s != nil {
		s.Unsummed = true
	}
}

// NoteDoubt notes the first doubt.
func (s *Seen) NoteDoubt(text string, weightsOnly bool) {
	if s != nil && s.Doubt == "" {
		s.Doubt, s.WeightsOnly = text, weightsOnly
	}
}

// NoteNumbers adds what was found in the named tensor.
func (s *Seen) NoteNumbers(tensor string, n Numbers) {
	if s == nil {
		return
	}
	all := &s.Numbers
	if bad := n.NaN+n.PosInf > 0; bad && all.NaN+all.PosInf == 0 || n.NegInf > 0 && all.First == "" {
		all.First = tensor
	}
	all.Scanned += n.Scanned
	all.NaN += n.NaN
	all.PosInf += n.PosInf
	all.NegInf += n.NegInf
	all.Skipped += n.Skipped
}

// ReadAt reads like io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.Ctx.Err(); err != nil {
		return 0, err
	}
	return f.R.ReadAt(p, off)
}

// Piece returns n bytes from off on as a file of its own.
func (f *File) Piece(off, n int64) *File {
	return &File{Ctx: f.Ctx, R: io.NewSectionReader(f, off, n), Size: n, Seen: f.Seen}
}

// Stream reads a file from some offset on.
type Stream struct {
	*bufio.Reader
	section *io.SectionReader
	start   int64
}

// From returns a reader of everything from off on.
func (f *File) From(off int64) *Stream {
	s := io.NewSectionReader(f, off, f.Size-off)
	return &Stream{bufio.NewReaderSize(s, 64<<10), s, off}
}

// Pos returns the offset of the next byte that is read.
func (s *Stream) Pos() int64 {
	read, err := s.section.Seek(0, io.SeekCurrent)
	if err != nil {
		panic(err) // a SectionReader knows where it is
	}
	return s.start + read - int64(s.Buffered())
}

// Bytes returns the n bytes at off. The error is io.ErrUnexpectedEOF if they are not in the file.
func (f *File) Bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > f.Size-n {
		return nil, io.ErrUnexpectedEOF
	}
	p := make([]byte, n)
	if m, err := f.ReadAt(p, off); int64(m) < n {
		return nil, err
	}
	return p, nil
}
