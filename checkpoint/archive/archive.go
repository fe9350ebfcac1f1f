// Package archive checks zip archives: those of torch.save, numpy.savez, Keras and others.
//
// It does not use archive/zip: that keeps the whole central directory in memory,
// accepts data in front of an archive, so that a truncated archive passes for one that is
// stored in it, and does not compare the header of an entry with its entry in the directory.
package archive

import (
	"bufio"
	"compress/flate"
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

// scanner returns what looks at the numbers of an entry that is a storage of torch, and the name of the
// storage's tensor.
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
// torchfile.ReadObject does. The archive must be complete. Object returns nil if it has no pickle, or one
// that cannot be followed.
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
		if flaw.Is(err) { // the pickle is whole, but too big, or does what is not followed
			return nil, nil
		}
		return o, err
	}
	return nil, nil
}
