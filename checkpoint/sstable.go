package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// castagnoli takes a tenth of a millisecond to make, which few processes need.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// masked hides a CRC-32C the way LevelDB and TensorFlow store it.
func masked(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }

const (
	tableMagic  = 0xdb4775248b80fb57
	tableFooter = 48
	// maxTable bounds a table, in bytes: it holds names and places, no tensors.
	maxTable = 1 << 30
)

// errTable is what a table's parts that do not fit together give.
const errTable = flaw("its table is damaged")

// readTable calls emit for every key and value of a LevelDB table, the form of
// TensorFlow's .index files, and checks every block's checksum.
func readTable(f *file, emit func(key, value []byte) error) error {
	if f.size < tableFooter {
		return flawf("truncated: it is too short for an index")
	}
	if f.size > maxTable {
		return flawf("it has %d bytes, which is too big for an index", f.size)
	}
	footer, err := f.bytes(f.size-tableFooter, tableFooter)
	if err != nil {
		return err
	}
	if le.Uint64(footer[40:]) != tableMagic {
		return flawf("truncated: it does not end like an index")
	}
	_, _, rest, ok := handle(footer) // of a block that TensorFlow leaves empty
	if !ok {
		return errTable
	}
	off, size, _, ok := handle(rest)
	if !ok {
		return errTable
	}
	index, err := block(f, off, size)
	if err != nil {
		return err
	}
	return entries(index, func(_, value []byte) error {
		off, size, _, ok := handle(value)
		if !ok {
			return errTable
		}
		data, err := block(f, off, size)
		if err != nil {
			return err
		}
		return entries(data, emit)
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

// block reads a block, after which stand the kind of its compression and its
// checksum.
func block(f *file, off, size uint64) ([]byte, error) {
	if size > uint64(f.size) || off > uint64(f.size) {
		return nil, flawf("truncated: a block of its index lies beyond its end")
	}
	b, err := f.bytes(int64(off), int64(size)+5)
	if err != nil {
		return nil, truncated("its index", err)
	}
	if masked(crc32.Checksum(b[:size+1], castagnoli())) != le.Uint32(b[size+1:]) {
		return nil, flawf("a block of its index fails its CRC")
	}
	switch b[size] {
	case 0:
		return b[:size], nil
	case 1:
		return unsnap(b[:size])
	default:
		return nil, flawf("its index is compressed in an unknown way")
	}
}

// entries calls emit for the keys and values of a block: each key is told by
// what it shares with the one before; the starts of the unshared ones follow.
func entries(b []byte, emit func(key, value []byte) error) error {
	if len(b) < 4 {
		return errTable
	}
	restarts := int64(le.Uint32(b[len(b)-4:]))
	if restarts > int64(len(b)-4)/4 {
		return errTable
	}
	b = b[:int64(len(b))-4-4*restarts]
	var key []byte
	for len(b) > 0 {
		var n [3]uint64
		for i := range n {
			v, width := binary.Uvarint(b)
			if width <= 0 || v > uint64(len(b)) && i > 0 || v > uint64(len(key)) && i == 0 {
				return errTable
			}
			n[i], b = v, b[width:]
		}
		if n[1] > uint64(len(b)) || n[2] > uint64(len(b))-n[1] {
			return errTable
		}
		key = append(key[:n[0]], b[:n[1]]...)
		if err := emit(key, b[n[1]:n[1]+n[2]]); err != nil {
			return err
		}
		b = b[n[1]+n[2]:]
	}
	return nil
}
