package archive

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Sizes and signatures of a zip archive's records (PKWARE's APPNOTE.TXT, 4.3).
const (
	Local, LocalLen         = "PK\x03\x04", 30
	Central, CentralLen     = "PK\x01\x02", 46
	End, EndLen             = "PK\x05\x06", 22
	End64, End64Len         = "PK\x06\x06", 56
	Locator64, Locator64Len = "PK\x06\x07", 20
	zipDescriptor           = "PK\x07\x08"
)

var le = binary.LittleEndian

// zipDirectory has the place of the central directory.
type zipDirectory struct{ offset, size, entries int64 }

// zipEntry is an entry of the central directory.
type zipEntry struct {
	name          string
	flags, method uint16
	crc           uint32
	packed, size  int64
	header        int64 // offset of its local header
	data          int64 // offset of its bytes; set by its check
}

func findZipDirectory(f *blob.File) (zipDirectory, error) {
	const (
		none    = flaw.Flaw("truncated: it has no end-of-central-directory record")
		damaged = flaw.Flaw("its end-of-central-directory record is damaged")
	)
	tailLen := min(f.Size, EndLen+1<<16-1)
	tail, err := f.Bytes(f.Size-tailLen, tailLen)
	if err != nil {
		return zipDirectory{}, err
	}
	at := int64(len(tail) - EndLen)
	for ; at >= 0; at-- {
		if string(tail[at:at+4]) == End && int(le.Uint16(tail[at+20:])) == len(tail)-EndLen-int(at) {
			break
		}
	}
	if at < 0 {
		return zipDirectory{}, none
	}
	r, end := tail[at:], f.Size-tailLen+at
	disks := uint32(le.Uint16(r[4:]) | le.Uint16(r[6:]))
	here, d := int64(le.Uint16(r[8:])), zipDirectory{int64(le.Uint32(r[16:])), int64(le.Uint32(r[12:])), int64(le.Uint16(r[10:]))}
	if l, err := f.Bytes(end-Locator64Len, Locator64Len); err == nil && string(l[:4]) == Locator64 {
		end = int64(le.Uint64(l[8:]))
		r, err := f.Bytes(end, End64Len)
		if err != nil || string(r[:4]) != End64 {
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
	if disks != 0 || here != d.entries || d.entries < 0 || d.entries > d.size/CentralLen {
		return d, damaged
	}
	return d, nil
}

// fits reports whether a field with that many bits may have the value narrow if the real value is wide.
func fits(narrow, wide int64, bits int) bool { return narrow == wide || narrow == 1<<bits-1 }

func readZipEntry(r *bufio.Reader) (zipEntry, error) {
	var h [CentralLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return zipEntry{}, err
	}
	if string(h[:4]) != Central {
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
		if le.Uint16(extra) == 1 { // sizes that need more than 32 bits, in this order
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

// locate checks the local header of an entry and finds the bytes of the entry.
func (c *checker) locate(e *zipEntry, bad func(string) error) error {
	f := c.f
	h, err := f.Bytes(e.header, LocalLen)
	if err == io.ErrUnexpectedEOF {
		return bad("lies beyond its end")
	}
	if err != nil {
		return err
	}
	data := e.header + LocalLen + int64(le.Uint16(h[26:])) + int64(le.Uint16(h[28:]))
	if string(h[:4]) != Local || le.Uint16(h[8:]) != e.method {
		return bad("has no header")
	}
	if data > c.end || e.packed < 0 || e.size < 0 || e.packed > c.end-data {
		return bad("does not fit into it")
	}
	name, err := f.Bytes(e.header+LocalLen, int64(le.Uint16(h[26:])))
	if err != nil {
		return err
	}
	// The checksum is before or after the data. After the data, it may have a signature.
	const descriptor, encrypted = 1 << 3, 1 << 0
	sum := le.Uint32(h[14:])
	if e.flags&descriptor != 0 {
		after, err := f.Bytes(data+e.packed, min(8, f.Size-data-e.packed))
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
	e.data = data
	return nil
}
