// Package hdf5 checks HDF5 files.
package hdf5

import (
	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Magic is the beginning of a superblock.
const Magic = "\x89HDF\r\n\x1a\n"

// find returns the offset of the superblock. It is 0, or 512, 1024, 2048 and so on after a block of the user.
// find returns -1 if the file has none.
func find(f *blob.File) (int64, error) {
	for off := int64(0); off+int64(len(Magic)) <= f.Size; off = max(512, off*2) {
		head, err := f.Bytes(off, int64(len(Magic)))
		if err != nil {
			return 0, err
		}
		if string(head) == Magic {
			return off, nil
		}
	}
	return -1, nil
}

// Check checks the superblock ("HDF5 File Format Specification", II.A). The superblock must say that the file
// was closed after it was written, and must state the length that the file has.
func Check(f *blob.File) error {
	at, err := find(f)
	if err != nil {
		return err
	}
	if at < 0 {
		return flaw.New("it has no HDF5 superblock")
	}
	b, err := f.Bytes(at, min(f.Size-at, 96))
	if err != nil {
		return err
	}
	const end = "its superblock"
	if len(b) < 12 {
		return flaw.New("truncated: it ends within %s", end)
	}
	// The offsets depend on the version. The third address is the end of the file.
	var flags, width, addresses int
	switch version := b[8]; version {
	case 0:
		flags, width, addresses = 20, 13, 24
	case 1:
		flags, width, addresses = 20, 13, 28
	case 2, 3:
		flags, width, addresses = 11, 9, 12
	default:
		return flaw.New("its superblock has the unknown version %d", version)
	}
	if len(b) <= max(flags, width) {
		return flaw.New("truncated: it ends within %s", end)
	}
	size := int(b[width])
	if size != 2 && size != 4 && size != 8 {
		return flaw.New("its superblock has addresses of %d bytes", size)
	}
	if len(b) < addresses+3*size {
		return flaw.New("truncated: it ends within %s", end)
	}
	var eof uint64
	for i := range size {
		eof |= uint64(b[addresses+2*size+i]) << (8 * i)
	}
	switch {
	case b[flags]&1 != 0:
		return flaw.New("whoever wrote it has not closed it")
	case eof != uint64(f.Size):
		return flaw.New("truncated: it has %d bytes, but its superblock says %d", f.Size, eof)
	}
	return nil
}
