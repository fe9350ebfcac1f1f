// Package sstable reads LevelDB tables, the form of TensorFlow's .index files.
package sstable

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Castagnoli returns the table of CRC-32C. The table is made at the first call, because making it
// takes a tenth of a millisecond and few processes need it.
var Castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// Masked returns crc in the form in which LevelDB and TensorFlow store a CRC-32C.
func Masked(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }

const (
	// Magic is the little-endian number at the end of every table.
	Magic       = 0xdb4775248b80fb57
	tableFooter = 48
	// maxTable is the maximum size of a table, in bytes. A table has names and places, but no tensors.
	maxTable = 1 << 30
)

// ErrDamaged is the flaw of a table whose parts contradict each other.
const ErrDamaged = flaw.Flaw("its table is damaged")

// Read calls emit for every key and value of the table in the first size bytes of r, and
// checks every block's checksum.
func Read(r io.ReaderAt, size int64, emit func(key, value []byte) error) error {
	if size < tableFooter {
		return flaw.New("truncated: it is too short for an index")
	}
	if size > maxTable {
		return flaw.New("it has %d bytes, which is too big for an index", size)
	}
	footer, err := bytesAt(r, size, size-tableFooter, tableFooter)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(footer[40:]) != Magic {
		return flaw.New("truncated: it does not end like an index")
	}
	_, _, rest, ok := handle(footer) // the block that TensorFlow leaves empty
	if !ok {
		return ErrDamaged
	}
	off, length, _, ok := handle(rest)
	if !ok {
		return ErrDamaged
	}
	index, err := block(r, size, off, length)
	if err != nil {
		return err
	}
	return Entries(index, func(_, value []byte) error {
		off, length, _, ok := handle(value)
		if !ok {
			return ErrDamaged
		}
		data, err := block(r, size, off, length)
		if err != nil {
			return err
		}
		return Entries(data, emit)
	})
}

// handle reads the place of a block.
func handle(b []byte) (off, size uint64, rest []byte, ok bool) {
	off, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, nil, false
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return 0, 0, nil, false
	}
	return off, size, b[n+m:], true
}

// block reads a block. After the block come the kind of its compression and its checksum.
func block(r io.ReaderAt, size int64, off, length uint64) ([]byte, error) {
	if length > uint64(size) || off > uint64(size) {
		return nil, flaw.New("truncated: a block of its index lies beyond its end")
	}
	b, err := bytesAt(r, size, int64(off), int64(length)+5)
	if err != nil {
		return nil, flaw.Truncated("its index", err)
	}
	if Masked(crc32.Checksum(b[:length+1], Castagnoli())) != binary.LittleEndian.Uint32(b[length+1:]) {
		return nil, flaw.New("a block of its index fails its CRC")
	}
	switch b[length] {
	case 0:
		return b[:length], nil
	case 1:
		return Unsnap(b[:length])
	default:
		return nil, flaw.New("its index is compressed in an unknown way")
	}
}

// bytesAt returns the n bytes at off.
func bytesAt(r io.ReaderAt, size, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > size-n {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	if m, err := r.ReadAt(b, off); int64(m) < n {
		return nil, err
	}
	return b, nil
}

// Entries calls emit for each key and value of a block. For each key, a block has the number of bytes that the
// key shares with the key before it, and the other bytes of the key. At the end, a block has the offsets of the
// keys that are stored in full.
func Entries(b []byte, emit func(key, value []byte) error) error {
	if len(b) < 4 {
		return ErrDamaged
	}
	restarts := int64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	if restarts > int64(len(b)-4)/4 {
		return ErrDamaged
	}
	b = b[:int64(len(b))-4-4*restarts]
	var key []byte
	for len(b) > 0 {
		var n [3]uint64
		for i := range n {
			v, width := binary.Uvarint(b)
			if width <= 0 || v > uint64(len(b)) && i > 0 || v > uint64(len(key)) && i == 0 {
				return ErrDamaged
			}
			n[i], b = v, b[width:]
		}
		if n[1] > uint64(len(b)) || n[2] > uint64(len(b))-n[1] {
			return ErrDamaged
		}
		key = append(key[:n[0]], b[:n[1]]...)
		if err := emit(key, b[n[1]:n[1]+n[2]]); err != nil {
			return err
		}
		b = b[n[1]+n[2]:]
	}
	return nil
}
