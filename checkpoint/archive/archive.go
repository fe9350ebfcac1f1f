// Package archive checks zip archives: those of torch.save, numpy.savez, Keras and others.
//
// It does not use archive/zip: that keeps the whole central directory in memory,
// accepts data in front of an archive, so that a truncated archive passes for one that is
// stored in it, and does not compare the header of an entry with its entry in the directory.
package archive

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"path"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/hdf5"
	"github.com/gangrun/gangrun/checkpoint/numpy"
	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/checkpoint/torchfile"
)

// The formats of archives, as job.Checkpoint names them.
const (
	Torch = "torch" // of torch.save
	NPZ   = "npz"   // of numpy.savez
	Keras = "keras" // a model of Keras
	Zip   = "zip"   // any other
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

// zipDirectory is where an archive's central directory is.
type zipDirectory struct{ offset, size, entries int64 }

// zipEntry is an entry of the central directory.
type zipEntry struct {
	name          string
	flags, method uint16
	crc           uint32
	packed, size  int64
	header        int64 // offset of its local header
	data          int64 // offset of its bytes, known after its check
}

// Check checks every entry of an archive, and returns the archive's format. The archive must
// be the whole file: an archive that is truncated just after an archive stored in it ends with
// the end record of the latter.
func Check(f *blob.File) (format string, err error) {
	dir, err := findZipDirectory(f)
	if err != nil {
		return "", err
	}
	if dir.entries == 0 {
		return "", flaw.New("its archive has no entries")
	}
	c := checker{f: f, end: dir.offset, format: NPZ, buf: make([]byte, min(256<<10, f.Size))}
	r := bufio.NewReaderSize(io.NewSectionReader(f, dir.offset, dir.size), 64<<10)
	for range dir.entries {
		e, err := readZipEntry(r)
		if err != nil {
			return "", flaw.Truncated("its central directory", err)
		}
		if err := c.check(e); err != nil {
			return "", err
		}
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return "", flaw.New("its central directory holds more than its %d entries", dir.entries)
	}
	return c.finish()
}

// checker is an archive that is being checked.
type checker struct {
	f       *blob.File
	end     int64 // offset of the central directory
	format  string
	buf     []byte
	wrong   error // the first entry whose checksum is wrong
	right   bool  // a checksum is right
	object  *torchfile.Object
	pickled bool // its pickle is complete
	parts   [3]bool
}

// kerasParts are what a model of Keras consists of.
var kerasParts = [3]string{"metadata.json", "config.json", "model.weights.h5"}

// check checks one entry and notes what it says of the format.
func (c *checker) check(e zipEntry) error {
	sum, err := c.checkEntry(&e)
	if err != nil {
		return err
	}
	if e.crc != 0 && e.size > 0 {
		if right := sum == e.crc; !right && c.wrong == nil {
			c.wrong = flaw.New("truncated: entry %s fails its CRC", e.name)
		} else if right {
			c.right = true
		}
	}
	if c.right && c.wrong != nil {
		return c.wrong
	}
	switch base := path.Base(e.name); {
	case base == "data.pkl":
		c.format = Torch
		if c.pickled = c.wrong == nil; !c.pickled && e.method == 0 {
			c.pickled = pickle.Scan(c.f.Piece(e.data, e.packed).From(0).Reader, nil) == nil
		}
	case c.format == NPZ && path.Ext(e.name) != ".npy":
		c.format = Zip
	}
	for i, part := range kerasParts {
		c.parts[i] = c.parts[i] || e.name == part
	}
	return nil
}

// finish returns the format once all entries were checked. If no checksum at all is right, torch.save was
// told to compute none (torch.serialization.set_crc32_options): then those that stand there mean nothing.
func (c *checker) finish() (string, error) {
	if c.wrong != nil {
		if c.format != Torch || !c.pickled {
			return "", c.wrong
		}
		c.f.Seen.NoteUnsummed()
	}
	if c.format == Torch && c.wrong == nil && !c.right {
		c.f.Seen.NoteUnsummed() // they are all 0
	}
	if c.format == Zip && c.parts[0] && c.parts[1] {
		if !c.parts[2] {
			return "", flaw.New("its entry %s is missing", kerasParts[2])
		}
		return Keras, nil
	}
	return c.format, nil
}

// IsKeras returns a flaw if an archive whose name ends in .keras is of another format.
func IsKeras(format string) error {
	if format == Keras {
		return nil
	}
	return flaw.New("it lacks %s or %s, which a model of Keras has", kerasParts[0], kerasParts[1])
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

// fits reports whether a field of so many bits can stand for a wider one.
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

// checkEntry checks an entry's local header and the bytes of the entry, and returns their checksum. It does
// not check bytes that are encrypted or compressed by a method other than deflate: then the checksum is the
// entry's own. It also checks the format of arrays and of HDF5.
func (c *checker) checkEntry(e *zipEntry) (sum uint32, err error) {
	bad := func(what string) error { return flaw.New("truncated: entry %s %s", e.name, what) }
	if err := c.locate(e, bad); err != nil {
		return 0, err
	}
	const encrypted = 1 << 0
	if e.flags&encrypted != 0 {
		return e.crc, nil
	}
	read := &counter{Hash32: crc32.NewIEEE()}
	out := io.Writer(read)
	scanner, name := c.scanner(e)
	if scanner != nil {
		out = io.MultiWriter(read, scanner)
		defer func() {
			if err == nil {
				c.f.Seen.NoteNumbers(name, scanner.Found())
			}
		}()
	}
	r := io.Reader(io.NewSectionReader(c.f, e.data, e.packed))
	switch e.method {
	case 0:
		if e.packed != e.size {
			return 0, bad("has two sizes")
		}
		if path.Ext(e.name) == ".h5" {
			if err := hdf5.Check(c.f.Piece(e.data, e.packed)); err != nil {
				return 0, flaw.Within("entry "+e.name, err)
			}
		}
	case 8:
		r = flate.NewReader(bufio.NewReaderSize(r, 64<<10))
	default:
		return e.crc, nil
	}
	if e.method == 0 && path.Ext(e.name) != ".npy" {
		err := c.f.CopyTo(out, e.data, e.packed)
		return read.Sum32(), err
	}
	var corrupt flate.CorruptInputError
	r = io.TeeReader(r, out)
	if path.Ext(e.name) == ".npy" {
		array := bufio.NewReaderSize(r, 64<<10)
		kind, big, err := numpy.CheckArray(array, e.size)
		if err != nil && !errors.As(err, &corrupt) {
			return 0, flaw.Within("entry "+e.name, err)
		}
		if err == nil && c.f.Seen.IsDeep() {
			if err := numpy.Scan(array, kind, big, e.name, c.f.Seen); err != nil && !errors.As(err, &corrupt) && err != io.ErrUnexpectedEOF {
				return 0, err
			}
		}
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, c.buf)
	switch {
	case errors.As(err, &corrupt) || err == io.ErrUnexpectedEOF:
		return 0, bad("cannot be unpacked")
	case err != nil:
		return 0, err
	case read.n != e.size:
		return 0, bad("has another size than it should")
	}
	return read.Sum32(), nil
}

// scanner returns what looks at the numbers of an entry that is a storage of torch, and the name of the storage's
// tensor.
func (c *checker) scanner(e *zipEntry) (*finite.Scanner, string) {
	dir, key := path.Split(e.name)
	switch {
	case !c.f.Seen.IsDeep() || e.method != 0:
		return nil, ""
	case key == "data.pkl":
		// The entry comes before the storages. One that cannot be read is found by its check.
		c.object, _ = torchfile.ReadObject(c.f.Piece(e.data, e.packed).From(0).Reader)
		return nil, ""
	case path.Base(dir) != "data":
		return nil, ""
	}
	var s *torchfile.Storage
	if c.object != nil {
		s = c.object.Storages[key]
	}
	if s == nil || s.Kind() == finite.Unknown {
		c.f.Seen.NoteNumbers("", blob.Numbers{Skipped: 1})
		return nil, ""
	}
	return finite.NewScanner(s.Kind(), false), s.Name(key)
}

// locate checks an entry's local header and finds its bytes.
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
	// The checksum stands before the data, or after it, there with a signature
	// or without.
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

// counter is a checksum that counts its bytes.
type counter struct {
	hash.Hash32
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.Hash32.Write(p)
}

// Object returns what the pickle of a torch archive says, which is its entry data.pkl. It keeps options as
// torchfile.ReadObject does. It returns nil if there is none, or if it is too big to be followed.
func Object(f *blob.File, options ...string) (*torchfile.Object, error) {
	dir, err := findZipDirectory(f)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, dir.offset, dir.size), 64<<10)
	c := checker{f: f, end: dir.offset}
	for range dir.entries {
		e, err := readZipEntry(r)
		if err != nil {
			return nil, flaw.Truncated("its central directory", err)
		}
		if path.Base(e.name) != "data.pkl" || e.method != 0 {
			continue
		}
		if err := c.locate(&e, func(what string) error { return flaw.New("entry %s %s", e.name, what) }); err != nil {
			return nil, err
		}
		o, err := torchfile.ReadObject(f.Piece(e.data, e.packed).From(0).Reader, options...)
		if err == pickle.ErrTooBig {
			return nil, nil
		}
		return o, err
	}
	return nil, nil
}
