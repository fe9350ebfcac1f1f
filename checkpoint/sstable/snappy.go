package sstable

import "github.com/klauspost/compress/snappy"

// maxSnappy is the maximum number of bytes to which one byte of Snappy can expand, rounded up. A copy of 64
// bytes takes 3 bytes.
const maxSnappy = 32

// Unsnap decompresses one block of Snappy. It returns ErrDamaged, and allocates no memory, if b claims to expand
// to more than any block of its length can.
func Unsnap(b []byte) ([]byte, error) {
	if size, err := snappy.DecodedLen(b); err != nil || size > maxSnappy*len(b) {
		return nil, ErrDamaged
	}
	plain, err := snappy.Decode(nil, b)
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}
