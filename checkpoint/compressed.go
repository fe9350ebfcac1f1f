package checkpoint

import (
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// checkCompressed unpacks a gzip, bzip2 or zlib stream to its end, where its
// checksum is. What is in it is not looked at.
func checkCompressed(f *file, open func(io.Reader) (io.Reader, error)) error {
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

func openGzip(r io.Reader) (io.Reader, error)  { return gzip.NewReader(r) }
func openBzip2(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }
func openZlib(r io.Reader) (io.Reader, error)  { return zlib.NewReader(r) }
