// Package compressed checks files of gzip, bzip2 and zlib.
package compressed

import (
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Check unpacks a gzip, bzip2 or zlib stream to its end, where its checksum is. It does not look at the
// unpacked data. open is Gzip, Bzip2 or Zlib.
func Check(f *blob.File, open func(io.Reader) (io.Reader, error)) error {
	r, err := open(f.From(0))
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	var corrupt flate.CorruptInputError
	var structure bzip2.StructuralError
	switch {
	case err == nil:
		return nil
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return flaw.New("truncated: its compressed data has no end")
	case errors.As(err, &corrupt), errors.As(err, &structure), err == gzip.ErrChecksum, err == gzip.ErrHeader,
		err == zlib.ErrChecksum, err == zlib.ErrHeader, err == zlib.ErrDictionary:
		return flaw.New("its compressed data is damaged: %v", err)
	}
	return err
}

// Gzip opens a stream of gzip.
func Gzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// Bzip2 opens a stream of bzip2.
func Bzip2(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }

// Zlib opens a stream of zlib.
func Zlib(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
