// Package tensorflow checks checkpoints of TensorFlow: an index, and the files of data that it names.
package tensorflow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/sstable"
)

// tensor describes a tensor, as a TensorFlow index does (BundleEntryProto in tensor_bundle.proto).
type tensor struct {
	kind, shard, offset, size uint64
	crc                       uint32
	sliced                    bool // it is in pieces, which have tensors of their own
}

// tfString and tfVariant are the kinds of tensors whose checksum is not the checksum of their bytes (DataType
// in types.proto).
const tfString, tfVariant = 7, 21

// tfKinds are the kinds of tensors of floating-point numbers.
var tfKinds = map[uint64]finite.Kind{1: finite.F32, 2: finite.F64, 8: finite.F32, 14: finite.BF16, 18: finite.F64, 19: finite.F16, 24: finite.F8E5M2, 25: finite.F8E4M3}

// dataName returns the name of a TensorFlow checkpoint's data file.
func dataName(prefix string, shard, shards uint64) string {
	return fmt.Sprintf("%s.data-%05d-of-%05d", prefix, shard, shards)
}

// Check checks a TensorFlow checkpoint. It checks the index, that every data file is there, and the place and
// checksum of every tensor. size is the size of all files of the checkpoint, in bytes.
func Check(p *blob.Pool, prefix string) (size int64, err error) {
	index, done, err := blob.Open(p.Ctx, prefix+".index", nil)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, flaw.New("its index is missing: it was not finished")
	}
	if err != nil {
		return 0, err
	}
	defer done()
	size = index.Size
	var shards uint64
	err = sstable.Read(index, index.Size, func(key, value []byte) error {
		if len(key) == 0 {
			var err error
			if shards, err = shardCount(value); err != nil {
				return err
			}
			for i := range shards {
				f, err := p.Get(dataName(prefix, i, shards))
				if errors.Is(err, fs.ErrNotExist) {
					return flaw.New("data file %d of %d is missing", i, shards)
				}
				if err != nil {
					return err
				}
				size += f.Size
			}
			return nil
		}
		t, err := parseTensor(value)
		if err != nil || t.sliced {
			return err
		}
		name := flaw.Short(string(key))
		if t.shard >= shards {
			return flaw.New("tensor %s is in data file %d of %d", name, t.shard, shards)
		}
		f, err := p.Get(dataName(prefix, t.shard, shards))
		if err != nil {
			return err
		}
		if t.offset > uint64(f.Size) || t.size > uint64(f.Size)-t.offset {
			return flaw.New("truncated: tensor %s lies beyond the end of data file %d", name, t.shard)
		}
		if t.kind == tfString || t.kind == tfVariant {
			return nil
		}
		sum := crc32.New(sstable.Castagnoli())
		out, scanner := io.Writer(sum), finite.NewScanner(tfKinds[t.kind], false)
		if p.Seen.IsDeep() && scanner != nil {
			out = io.MultiWriter(sum, scanner)
		}
		if err := f.CopyTo(out, int64(t.offset), int64(t.size)); err != nil {
			return err
		}
		if sstable.Masked(sum.Sum32()) != t.crc {
			return flaw.New("tensor %s fails its CRC", name)
		}
		if p.Seen.IsDeep() && scanner != nil {
			p.Seen.NoteNumbers(name, scanner.Found())
		}
		return nil
	})
	if err == nil && shards == 0 {
		err = flaw.New("its index names no data files")
	}
	return size, err
}

// maxShards is the maximum number of data files of a checkpoint.
const maxShards = 99999

// shardCount reads the number of data files from the index's first value
// (BundleHeaderProto).
func shardCount(value []byte) (uint64, error) {
	var n uint64
	err := fields(value, func(field int, v uint64) {
		if field == 1 {
			n = v
		}
	})
	if err == nil && n > maxShards {
		err = flaw.New("its index claims %d data files", n)
	}
	return n, err
}

// CheckEntry checks that value, the value of an entry of an index, can be read.
func CheckEntry(value []byte) error {
	if _, err := shardCount(value); err != nil {
		return err
	}
	_, err := parseTensor(value)
	return err
}

func parseTensor(value []byte) (tensor, error) {
	var t tensor
	err := fields(value, func(field int, v uint64) {
		switch field {
		case 1:
			t.kind = v
		case 3:
			t.shard = v
		case 4:
			t.offset = v
		case 5:
			t.size = v
		case 6:
			t.crc = uint32(v)
		case 7:
			t.sliced = true
		}
	})
	return t, err
}

// fields calls emit for every field of a protobuf message. v is the value of the field if that is a number.
func fields(b []byte, emit func(field int, v uint64)) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 > math.MaxInt32 {
			return sstable.ErrDamaged
		}
		b = b[n:]
		var v uint64
		switch tag & 7 {
		case 0:
			if v, n = binary.Uvarint(b); n <= 0 {
				return sstable.ErrDamaged
			}
		case 1:
			if n = 8; len(b) < n {
				return sstable.ErrDamaged
			}
			v = binary.LittleEndian.Uint64(b)
		case 2:
			size, m := binary.Uvarint(b)
			if m <= 0 || size > uint64(len(b)-m) {
				return sstable.ErrDamaged
			}
			n = m + int(size)
		case 5:
			if n = 4; len(b) < n {
				return sstable.ErrDamaged
			}
			v = uint64(binary.LittleEndian.Uint32(b))
		default:
			return sstable.ErrDamaged
		}
		b = b[n:]
		emit(int(tag>>3), v)
	}
	return nil
}
