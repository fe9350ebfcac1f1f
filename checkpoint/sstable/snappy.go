package sstable

import "github.com/klauspost/compress/snappy"

// maxSnappy is how many bytes one byte of Snappy can stand for, rounded up: a copy of 64
// bytes takes 3.
const maxSnappy = 32

// Unsnap decompresses one block of Snappy. It never allocates more memory than a block of len(b) compressed
// bytes can fill.
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
