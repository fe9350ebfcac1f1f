package onnx

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// reading reads a section of the file.
type reading struct {
	*bufio.Reader
	f        *blob.File
	pos, end int64
}

func (c *checker) section(off, n int64) *reading {
	r := &reading{bufio.NewReaderSize(nil, int(min(max(n, 16), 4<<10))), c.f, off, off + n}
	r.to(off)
	return r
}

// to continues at an offset.
func (r *reading) to(pos int64) {
	r.pos = pos
	r.Reset(io.NewSectionReader(r.f, pos, r.end-pos))
}

func (r *reading) byte() (byte, error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, flaw.Truncated("a field", err)
	}
	r.pos++
	return b, nil
}

func (r *reading) varint() (v uint64, err error) {
	for shift := 0; shift < 70; shift += 7 {
		b, err := r.byte()
		if err != nil {
			return 0, err
		}
		if v |= uint64(b&0x7f) << shift; b < 0x80 {
			return v, nil
		}
	}
	return 0, flaw.New("it is damaged at byte %d", r.pos)
}

func (r *reading) fixed(n int) (uint64, error) {
	var b [8]byte
	for i := range n {
		var err error
		if b[i], err = r.byte(); err != nil {
			return 0, err
		}
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// skip skips n bytes. It reads few of them.
func (r *reading) skip(n int64) error {
	if n > int64(r.Buffered()) {
		r.to(r.pos + n)
		return nil
	}
	_, err := r.Discard(int(n))
	r.pos += n
	return err
}
