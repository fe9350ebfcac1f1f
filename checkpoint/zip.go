// This file does not use archive/zip: that keeps the whole central directory in memory,
// accepts data in front of an archive, so that a truncated archive passes for one that is
// stored in it, and does not compare the header of an entry with its entry in the directory.

package checkpoint

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"path"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Sizes and signatures of a zip archive's records (PKWARE's APPNOTE.TXT, 4.3).
const (
	zipLocal, zipLocalLen         = "PK\x03\x04", 30
	zipCentral, zipCentralLen     = "PK\x01\x02", 46
	zipEnd, zipEndLen             = "PK\x05\x06", 22
	zip64End, zip64EndLen         = "PK\x06\x06", 56
	zip64Locator, zip64LocatorLen = "PK\x06\x07", 20
	zipDescriptor                 = "PK\x07\x08"
)

var le = binary.LittleEndian

// zipDirectory is where an archive's central directory is.
type zipDirectory struct{ offset, size, entries int64 }

// zipEntry is an entry of the central directory.
type zipEntry struct {
	name          string
	flags, method uint16
	crc           uint32
	packed, size  int64
	header        int64 // offset of its local header
}

// checkZip checks every entry of an archive. It returns the format: that of torch.save, of
// arrays only, or any other. The archive must be the whole file: an archive that is truncated
// just after an archive stored in it ends with the end record of the latter.
func checkZip(f *file) (string, error) {
	dir, err := findZipDirectory(f)
	if err != nil {
		return "", err
	}
	if dir.entries == 0 {
		return "", flaw.New("its archive has no entries")
	}
	kind := formatNPZ
	buf := make([]byte, min(256<<10, f.size))
	r := bufio.NewReaderSize(io.NewSectionReader(f, dir.offset, dir.size), 64<<10)
	for range dir.entries {
		e, err := readZipEntry(r)
		if err != nil {
			return "", flaw.Truncated("its central directory", err)
		}
		if err := checkZipEntry(f, e, dir.offset, buf); err != nil {
			return "", err
		}
		if path.Base(e.name) == "data.pkl" {
			kind = formatTorch
		} else if kind == formatNPZ && path.Ext(e.name) != ".npy" {
			kind = formatZip
		}
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return "", flaw.New("its central directory holds more than its %d entries", dir.entries)
	}
	return kind, nil
}

func findZipDirectory(f *file) (zipDirectory, error) {
	const (
		none    = flaw.Flaw("truncated: it has no end-of-central-directory record")
		damaged = flaw.Flaw("its end-of-central-directory record is damaged")
	)
	tailLen := min(f.size, zipEndLen+1<<16-1)
	tail, err := f.bytes(f.size-tailLen, tailLen)
	if err != nil {
		return zipDirectory{}, err
	}
	at := int64(len(tail) - zipEndLen)
	for ; at >= 0; at-- {
		if string(tail[at:at+4]) == zipEnd && int(le.Uint16(tail[at+20:])) == len(tail)-zipEndLen-int(at) {
			break
		}
	}
	if at < 0 {
		return zipDirectory{}, none
	}
	r, end := tail[at:], f.size-tailLen+at
	disks := uint32(le.Uint16(r[4:]) | le.Uint16(r[6:]))
	here, d := int64(le.Uint16(r[8:])), zipDirectory{int64(le.Uint32(r[16:])), int64(le.Uint32(r[12:])), int64(le.Uint16(r[10:]))}
	if l, err := f.bytes(end-zip64LocatorLen, zip64LocatorLen); err == nil && string(l[:4]) == zip64Locator {
		end = int64(le.Uint64(l[8:]))
		r, err := f.bytes(end, zip64EndLen)
		if err != nil || string(r[:4]) != zip64End {
			return d, none
		}
		wide := zipDirectory{int64(le.Uint64(r[48:])), int64(le.Uint64(r[40:])), int64(le.Uint64(r[32:]))}
		if !fits(d.offset, wide.offset, 32) || !fits(d.size, wide.size, 32) || !fits(d.entries, wide.entries, 16) || !fits(here, wide.entries, 16) {
			return d, damaged
		}
		disks = disks&^0xffff | le.Uint32(l[4:]) | le.Uint32(l[16:])&^1 | le.Uint32(r[16:]) | le.Uint32(r[20:])
		d, here = wide, int64(le.Uint64(r[24:]))
	}
	if d.offset < 0 || d.size < 0 || d.offset > end-d.size || d.offset+d.size != end {
		return d, flaw.Flaw("truncated: the end-of-central-directory record at its end is not its own")
	}
	if disks != 0 || here != d.entries || d.entries < 0 || d.entries > d.size/zipCentralLen {
		return d, damaged
	}
	return d, nil
}

// fits reports whether a field of so many bits can stand for a wider one.
func fits(narrow, wide int64, bits int) bool { return narrow == wide || narrow == 1<<bits-1 }

func readZipEntry(r *bufio.Reader) (zipEntry, error) {
	var h [zipCentralLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return zipEntry{}, err
	}
	if string(h[:4]) != zipCentral {
		return zipEntry{}, flaw.New("its central directory is damaged")
	}
	e := zipEntry{
		flags: le.Uint16(h[8:]), method: le.Uint16(h[10:]), crc: le.Uint32(h[16:]),
		packed: int64(le.Uint32(h[20:])), size: int64(le.Uint32(h[24:])), header: int64(le.Uint32(h[42:])),
	}
	rest := make([]byte, int(le.Uint16(h[28:]))+int(le.Uint16(h[30:]))+int(le.Uint16(h[32:])))
	if _, err := io.ReadFull(r, rest); err != nil {
		return zipEntry{}, err
	}
	e.name = string(rest[:le.Uint16(h[28:])])
	extra := rest[len(e.name) : len(e.name)+int(le.Uint16(h[30:]))]
	for len(extra) >= 4 {
		n := int(le.Uint16(extra[2:]))
		if n > len(extra)-4 {
			break
		}
		if le.Uint16(extra) == 1 { // the sizes that do not fit into 32 bits, in this order
			wide := extra[4 : 4+n]
			for _, v := range []*int64{&e.size, &e.packed, &e.header} {
				if *v == 1<<32-1 && len(wide) >= 8 {
					*v, wide = int64(le.Uint64(wide)), wide[8:]
				}
			}
		}
		extra = extra[4+n:]
	}
	return e, nil
}

// checkZipEntry checks an entry's local header and the bytes of the entry. It does not check
// bytes that are encrypted or compressed by a method other than deflate, nor a checksum of 0,
// which torch.save writes when it computes none. It also checks the format of arrays.
func checkZipEntry(f *file, e zipEntry, end int64, buf []byte) error {
	bad := func(what string) error { return flaw.New("truncated: entry %s %s", e.name, what) }
	h, err := f.bytes(e.header, zipLocalLen)
	if err == io.ErrUnexpectedEOF {
		return bad("lies beyond its end")
	}
	if err != nil {
		return err
	}
	data := e.header + zipLocalLen + int64(le.Uint16(h[26:])) + int64(le.Uint16(h[28:]))
	if string(h[:4]) != zipLocal || le.Uint16(h[8:]) != e.method {
		return bad("has no header")
	}
	if data > end || e.packed < 0 || e.size < 0 || e.packed > end-data {
		return bad("does not fit into it")
	}
	name, err := f.bytes(e.header+zipLocalLen, int64(le.Uint16(h[26:])))
	if err != nil {
		return err
	}
	// The checksum stands before the data, or after it, there with a signature
	// or without.
	const descriptor, encrypted = 1 << 3, 1 << 0
	sum := le.Uint32(h[14:])
	if e.flags&descriptor != 0 {
		after, err := f.bytes(data+e.packed, min(8, f.size-data-e.packed))
		if err != nil {
			return err
		}
		if len(after) < 8 {
			return bad("does not fit into it")
		}
		if sum = le.Uint32(after); string(after[:4]) == zipDescriptor {
			sum = le.Uint32(after[4:])
		}
	}
	if string(name) != e.name || (le.Uint16(h[6:])^e.flags)&(descriptor|encrypted) != 0 || sum != e.crc {
		return bad("has the header of another")
	}
	if e.flags&encrypted != 0 {
		return nil
	}
	r := io.Reader(io.NewSectionReader(f, data, e.packed))
	switch e.method {
	case 0:
		if e.packed != e.size {
			return bad("has two sizes")
		}
	case 8:
		r = flate.NewReader(bufio.NewReaderSize(r, 64<<10))
	default:
		return nil
	}
	var corrupt flate.CorruptInputError
	read := &counter{Hash32: crc32.NewIEEE()}
	r = io.TeeReader(r, read)
	if path.Ext(e.name) == ".npy" {
		if err := checkArray(bufio.NewReaderSize(r, 64<<10), e.size); err != nil && !errors.As(err, &corrupt) {
			return flaw.Within("entry "+e.name, err)
		}
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, buf)
	switch {
	case errors.As(err, &corrupt) || err == io.ErrUnexpectedEOF:
		return bad("cannot be unpacked")
	case err != nil:
		return err
	case read.n != e.size:
		return bad("has another size than it should")
	case e.crc != 0 && read.Sum32() != e.crc:
		return bad("fails its CRC")
	}
	return nil
}

// counter is a checksum that counts its bytes.
type counter struct {
	hash.Hash32
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.Hash32.Write(p)
}
