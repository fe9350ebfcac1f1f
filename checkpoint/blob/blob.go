// Package blob reads files of a checkpoint, or pieces of them, and collects what checks find in them.
package blob

import (
	"bufio"
	"context"
	"io"
)

// File is a file that is checked, or a piece of such a file. Reads fail after Ctx has ended.
type File struct {
	Ctx  context.Context
	R    io.ReaderAt
	Size int64 // in bytes
	// Seen collects findings that are no flaws. It is nil if nobody wants these findings.
	Seen *Seen
}

// Seen has findings about the files of a checkpoint that are no flaws. The methods of a nil Seen do nothing and
// return false.
type Seen struct {
	// Deep tells the checks to read the numbers of tensors, too.
	Deep bool
	// Unsummed is true if an archive was written without checksums.
	Unsummed bool
	// Doubt is why gangrun uses the checkpoint only if there is no better one. It is empty if there is no
	// doubt.
	Doubt string
	// WeightsOnly is true if Doubt says that the checkpoint has only weights: the state of the optimizer is missing.
	WeightsOnly bool
	// Numbers has the findings about numbers of tensors.
	Numbers Numbers
}

// Numbers counts numbers in tensors.
type Numbers struct {
	Scanned int64 // numbers that were read
	NaN     int64 // how many of them are NaN
	PosInf  int64
	NegInf  int64
	// First is the name of the first tensor with a NaN or +Inf. If no tensor has one, First is the first tensor
	// with a -Inf.
	First string
	// Skipped is how many tensors could not be read.
	Skipped int64
}

// IsDeep reports whether the checks should read the numbers of tensors. s may be nil.
func (s *Seen) IsDeep() bool { return s != nil && s.Deep }

// NoteUnsummed records that an archive has no checksums.
func (s *Seen) NoteUnsummed() {
	if s != nil {
		s.Unsummed = true
	}
}

// NoteDoubt records a doubt. Only the first doubt is kept.
func (s *Seen) NoteDoubt(text string, weightsOnly bool) {
	if s != nil && s.Doubt == "" {
		s.Doubt, s.WeightsOnly = text, weightsOnly
	}
}

// NoteNumbers adds the findings about a tensor.
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

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.Ctx.Err(); err != nil {
		return 0, err
	}
	return f.R.ReadAt(p, off)
}

// Piece returns the n bytes from off on as a File.
func (f *File) Piece(off, n int64) *File {
	return &File{Ctx: f.Ctx, R: io.NewSectionReader(f, off, n), Size: n, Seen: f.Seen}
}

// Stream reads a file from an offset on.
type Stream struct {
	*bufio.Reader
	section *io.SectionReader
	start   int64
}

// From returns a Stream from off on.
func (f *File) From(off int64) *Stream {
	s := io.NewSectionReader(f, off, f.Size-off)
	return &Stream{bufio.NewReaderSize(s, 64<<10), s, off}
}

// Pos returns the offset of the next byte that the Stream reads.
func (s *Stream) Pos() int64 {
	read, err := s.section.Seek(0, io.SeekCurrent)
	if err != nil {
		panic(err) // Seek of a SectionReader does not fail
	}
	return s.start + read - int64(s.Buffered())
}

// Bytes returns the n bytes at off. The error is io.ErrUnexpectedEOF if the file ends before them.
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
