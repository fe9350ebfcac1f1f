// Package ocdbt checks databases in the OCDBT format of TensorStore, to which Orbax writes arrays. A database
// has a manifest, and data files with a tree of nodes and values. See
// https://google.github.io/tensorstore/kvstore/ocdbt, "Storage format".
package ocdbt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"path"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/sstable"
)

// Magic numbers at the beginning of a manifest and of a node, in big-endian order.
const (
	ManifestMagic = 0x0cdb3a2a
	NodeMagic     = 0x0cdb20de
)

const (
	maxNode   = 16 << 20 // bytes of a node, compressed or not; TensorStore's limit is 8 MB by default
	maxNodes  = 1 << 20  // nodes of a tree
	maxHeight = 64
)

const errDamaged = flaw.Flaw("its tree is damaged")

// Check checks the newest version of a database. Every node of its tree must have the right checksum, and
// every value must be inside its data file. open opens a data file by its path, which is relative to the
// directory of the database.
func Check(manifest *blob.File, open func(name string) (*blob.File, error)) error {
	body, err := unpack(manifest, 0, manifest.Size, ManifestMagic)
	if err != nil {
		return err
	}
	root, err := readManifest(body)
	if err != nil || root.missing() {
		return err
	}
	w := walker{open: open}
	return w.walk(root.place, root.height)
}

// unpack returns the body of a manifest or of a node.
func unpack(f *blob.File, off, n int64, magic uint32) ([]byte, error) {
	const header, sum = 12, 4
	if n < header+2+sum {
		return nil, flaw.New("truncated: it has %d bytes, which is too short for its header", n)
	}
	if n > maxNode {
		return nil, flaw.New("it has a node of %d bytes, but may have %d", n, maxNode)
	}
	b, err := f.Bytes(off, n)
	if err != nil {
		return nil, flaw.Truncated("a node", err)
	}
	if binary.BigEndian.Uint32(b) != magic {
		return nil, flaw.New("it does not begin like OCDBT")
	}
	if length := binary.LittleEndian.Uint64(b[4:]); length != uint64(n) {
		return nil, flaw.New("truncated: it has %d bytes, but its header says %d", n, length)
	}
	if crc32.Checksum(b[:n-sum], sstable.Castagnoli()) != binary.LittleEndian.Uint32(b[n-sum:]) {
		return nil, flaw.New("it fails its CRC")
	}
	r := reader{b: b[header : n-sum]}
	version, packing := r.varint(), r.varint()
	switch {
	case r.bad:
		return nil, errDamaged
	case version != 0:
		return nil, flaw.New("its format has the unknown version %d", version)
	case packing == 0:
		return r.b, nil
	case packing != 1:
		return nil, flaw.New("it is compressed in an unknown way (%d)", packing)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxNode), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	body, err := d.DecodeAll(r.b, nil)
	if err != nil {
		return nil, flaw.New("it cannot be unpacked: %v", err)
	}
	return body, nil
}

// place is the place of a node or value in a data file.
type place struct {
	base, path     string // path begins with base
	offset, length uint64
}

// missing reports whether the tree at the place is empty.
func (p place) missing() bool { return p.offset == math.MaxUint64 }

// root is the root of the tree of a version.
type root struct {
	place
	height byte
}

// readManifest returns the root of the newest version.
func readManifest(body []byte) (root, error) {
	r := reader{b: body}
	r.bytes(16) // uuid
	kind := r.byte()
	r.varint() // max_inline_value_bytes
	r.varint() // max_decoded_node_bytes
	r.byte()   // version_tree_arity_log2
	if r.varint() == 1 {
		r.bytes(4) // compression level of zstd
	}
	if r.bad {
		return root{}, errDamaged
	}
	if kind != 0 {
		return root{}, flaw.New("its versions are in other manifests, which gangrun does not read")
	}
	files := r.files("")
	n := r.count()
	if n == 0 {
		return root{}, flaw.New("it has no version: nothing was committed")
	}
	r.varints(n) // generation numbers
	heights := r.bytes(n)
	places := r.places(files, n, true)
	if r.bad {
		return root{}, errDamaged
	}
	return root{places[n-1], heights[n-1]}, nil
}

// walker checks a tree.
type walker struct {
	open  func(name string) (*blob.File, error)
	nodes int
}

// file opens the data file of a place, and checks that the place is inside it.
func (w *walker) file(p place) (*blob.File, error) {
	name := path.Clean(p.path)
	if !filepath.IsLocal(name) {
		return nil, flaw.New("it names the data file %q, which is no place", flaw.Short(p.path))
	}
	f, err := w.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, flaw.New("its data file %s is missing", name)
	}
	if err != nil {
		return nil, err
	}
	if p.offset > uint64(f.Size) || p.length > uint64(f.Size)-p.offset {
		return nil, flaw.New("truncated: its data file %s has %d bytes, but should have at least %d", name, f.Size, p.offset+p.length)
	}
	return f, nil
}

// walk checks a node and all nodes and values below it.
func (w *walker) walk(p place, height byte) error {
	if w.nodes++; w.nodes > maxNodes || height > maxHeight {
		return flaw.New("its tree is too big to be followed")
	}
	f, err := w.file(p)
	if err != nil {
		return err
	}
	body, err := unpack(f, int64(p.offset), int64(p.length), NodeMagic)
	if err != nil {
		return flaw.Within("node at byte "+text(p.offset)+" of "+path.Clean(p.path), err)
	}
	r := reader{b: body}
	if r.byte() != height {
		return errDamaged
	}
	files := r.files(p.base)
	n := r.count()
	if r.bad || n == 0 {
		return errDamaged
	}
	if height == 0 {
		return w.values(&r, files, n)
	}
	r.keys(n, true)
	children := r.places(files, n, false)
	if r.bad {
		return errDamaged
	}
	for _, c := range children {
		if err := w.walk(c, height-1); err != nil {
			return err
		}
	}
	return nil
}

// values checks the values of a leaf.
func (w *walker) values(r *reader, files []place, n int) error {
	keys := r.keys(n, false)
	lengths := r.varints(n)
	kinds := r.varints(n)
	var far []int
	near := uint64(0)
	for i := range n {
		switch {
		case r.bad || lengths[i] > math.MaxInt64/4:
			return errDamaged
		case kinds[i] == 1:
			far = append(far, i)
		case kinds[i] == 0:
			near += min(lengths[i], maxNode+1)
		default:
			return errDamaged
		}
	}
	ids, offsets := r.varints(len(far)), r.varints(len(far))
	if r.bad || near != uint64(len(r.b)) {
		return errDamaged
	}
	for i, at := range far {
		if ids[i] >= uint64(len(files)) {
			return errDamaged
		}
		p := files[ids[i]]
		p.offset, p.length = offsets[i], lengths[at]
		if _, err := w.file(p); err != nil {
			return flaw.Within(flaw.Short(keys[at]), err)
		}
	}
	return nil
}
