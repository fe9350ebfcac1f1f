// Package packedlog reads logs that are compressed or in UTF-16. For a log in a format that it
// cannot read, its error names the format.
package packedlog

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/view"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
)

// maxUnpacked is the most bytes that are read of a compressed log: a small file can hold
// hours of reading.
const maxUnpacked = 8 << 30

// format is a format of logs other than plain UTF-8, which is known by its first bytes.
type format struct {
	magic string
	name  string                             // as in "is compressed with zstd"
	open  func(io.Reader) (io.Reader, error) // nil where gangrun does not read it
	cat   string                             // the command that does
}

// formats are tried in this order: text in UTF-32 begins with the mark of UTF-16.
var formats = []format{
	{magic: "\x1f\x8b", name: "gzip", open: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{magic: "BZh", name: "bzip2", open: func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
	{magic: "\x28\xb5\x2f\xfd", name: "zstd", open: fromZstd},
	{magic: "\xfd7zXZ\x00", name: "compressed with xz", cat: "xzcat"},
	{magic: "\x04\x22\x4d\x18", name: "compressed with lz4", cat: "lz4cat"},
	{magic: "PK\x03\x04", name: "a zip archive", cat: "unzip -p"},
	{magic: "\xff\xfe\x00\x00", name: "text in UTF-32", cat: "iconv -f UTF-32 -t UTF-8"},
	{magic: "\x00\x00\xfe\xff", name: "text in UTF-32", cat: "iconv -f UTF-32 -t UTF-8"},
	{magic: "\xff\xfe", name: "UTF-16", open: fromUTF16},
	{magic: "\xfe\xff", name: "UTF-16", open: fromUTF16},
	{magic: "\xef\xbb\xbf", name: "UTF-8", open: func(r io.Reader) (io.Reader, error) {
		_, err := io.CopyN(io.Discard, r, 3)
		return r, err
	}},
}

// fromZstd returns what a frame of zstd holds. One goroutine, the reader's own, decodes it.
func fromZstd(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
}

func fromUTF16(r io.Reader) (io.Reader, error) {
	return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(r), nil
}

// formatError is the error for a log in a format that gangrun does not read.
type formatError struct {
	log string // "-" is standard input
	format
}

// Error names the log and its format.
func (e *formatError) Error() string {
	return fmt.Sprintf("%q is %s", logName(e.log), e.name)
}

// Hint names the command that reads the log.
func (e *formatError) Hint() string {
	if e.log == "-" {
		return fmt.Sprintf("put %[1]s before it, as in: %[1]s FILE | gangrun diagnose -", e.cat)
	}
	return fmt.Sprintf("%s %s | gangrun diagnose -", e.cat, view.ShellWord(e.log))
}

func logName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// Open returns the text of a log that may be compressed, in UTF-16, or both. If a log can be
// read only in part, Open calls note with the reason. The name "-" is standard input.
func Open(name string, log io.Reader, note func(string)) (io.Reader, error) {
	for range 2 { // a compressed one may hold UTF-16
		in := bufio.NewReader(log)
		begin, err := in.Peek(6)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		log = in
		for _, f := range formats {
			if !bytes.HasPrefix(begin, []byte(f.magic)) {
				continue
			}
			if f.open == nil {
				return nil, &formatError{name, f}
			}
			inner, err := f.open(in)
			if err != nil {
				return nil, fmt.Errorf("%q cannot be read as %s: %w", logName(name), f.name, err)
			}
			log = &unpacked{log: inner, name: logName(name), format: f.name, left: maxUnpacked, note: note}
			break
		}
		if log == in {
			break
		}
	}
	return log, nil
}

// unpacked reads what a log of another format holds.
type unpacked struct {
	log          io.Reader
	name, format string
	left         int64 // bytes that may still come
	note         func(string)
}

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.log.Read(p)
	u.left -= int64(n)
	switch {
	case u.left < 0:
		return n, fmt.Errorf("%q holds more than %d GiB: cut it shorter, as with tail -c 100M", u.name, int64(maxUnpacked)>>30)
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		u.note(fmt.Sprintf("%q ends within its %s data: what stands before that is read", u.name, u.format))
		return n, io.EOF
	}
	return n, fmt.Errorf("%q cannot be uncompressed: %w", u.name, err)
}
