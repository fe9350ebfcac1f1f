// Package archive checks zip archives of torch.save, numpy.savez, Keras and other programs.
//
// It does not use archive/zip, for three reasons. archive/zip keeps the whole central directory in memory. It
// does not compare the local header of an entry with the directory. And it accepts data before an archive: if
// an archive contains another one and is truncated right after it, archive/zip would accept the file as the
// inner archive.
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
	Torch = "torch" // written by torch.save
	NPZ   = "npz"   // written by numpy.savez
	Keras = "keras" // a model of Keras
	Zip   = "zip"   // any other archive
)

// Check checks every entry of an archive, and returns the format of the archive. The archive must be the
// whole file.
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

// checker checks an archive.
type checker struct {
	f       *blob.File
	end     int64 // offset of the central directory
	format  string
	buf     []byte
	wrong   error // error of the first entry whose checksum is wrong
	right   bool  // at least one checksum is right
	object  *torchfile.Object
	pickled bool // the pickle is complete
	parts   [3]bool
}

// kerasParts are the entries of a Keras model.
var kerasParts = [3]string{"metadata.json", "config.json", "model.weights.h5"}

// check checks an entry. It also records which formats the archive may have.
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

// finish returns the format after all entries were checked. If no checksum is right, torch.save was told to
// compute none (torch.serialization.set_crc32_options), and the checksums are ignored.
func (c *checker) finish() (string, error) {
	if c.wrong != nil {
		if c.format != Torch || !c.pickled {
			return "", c.wrong
		}
		c.f.Seen.NoteUnsummed()
	}
	if c.format == Torch && c.wrong == nil && !c.right {
		c.f.Seen.NoteUnsummed() // all checksums are 0
	}
	if c.format == Zip && c.parts[0] && c.parts[1] {
		if !c.parts[2] {
			return "", flaw.New("its entry %s is missing", kerasParts[2])
		}
		return Keras, nil
	}
	return c.format, nil
}

// IsKeras returns a flaw if the format of an archive whose name ends in .keras is not Keras.
func IsKeras(format string) error {
	if format == Keras {
		return nil
	}
	return flaw.New("it lacks %s or %s, which a model of Keras has", kerasParts[0], kerasParts[1])
}

// checkEntry checks the local header and the bytes of an entry, and returns their checksum. It also checks
// arrays and HDF5 files. It cannot check bytes that are encrypted, or compressed by a method other than
// deflate. In these cases it returns the checksum in the entry.
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

// scanner returns a Scanner for an entry that is a storage of torch, and the name of the storage's tensor.
// The Scanner is nil for other entries.
func (c *checker) scanner(e *zipEntry) (*finite.Scanner, string) {
	dir, key := path.Split(e.name)
	switch {
	case !c.f.Seen.IsDeep() || e.method != 0:
		return nil, ""
	case key == "data.pkl":
		// The pickle comes before the storages. The check of the entry reports one that cannot be read.
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

// counter is a checksum that also counts bytes.
type counter struct {
	hash.Hash32
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.Hash32.Write(p)
}

// Object returns the object in a torch archive's pickle (the entry data.pkl). The archive must be complete. options
// are as for torchfile.ReadObject. Object returns nil if the archive has no pickle, or if the pickle cannot be
// interpreted.
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
		if flaw.Is(err) { // the pickle is complete, but too large, or has instructions that are not interpreted
			return nil, nil
		}
		return o, err
	}
	return nil, nil
}
