// Package onnx checks ONNX models. A model is a protobuf message (ModelProto in onnx.proto). Its tensors have
// their bytes in the message or in files beside it.
package onnx

import (
	"errors"
	"io/fs"
	"math"
	"math/bits"
	"path/filepath"
	"strconv"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Check checks that a model is complete: every message is as long as its length prefix says, there is a graph,
// and every tensor has as many bytes as its shape needs. open opens a file in the directory of the model.
func Check(f *blob.File, open func(name string) (*blob.File, error)) error {
	c := checker{f: f, open: open}
	var version, graph, operators bool
	end, err := c.message(0, f.Size, 0, func(field int, wire byte, at, n int64, _ uint64) error {
		switch {
		case field == 1 && wire == 0: // ir_version
			version = true
		case field == 8 && wire == 2: // opset_import
			operators = true
		case field == 7 && wire == 2:
			graph = true
			return c.graph(at, n, 1)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case end != f.Size || !version || !graph || !operators:
		return flaw.New("truncated: it has no version, no graph or no set of operators")
	}
	return nil
}

// maxNested bounds how deep graphs may be nested, for example the graph of a loop.
const maxNested = 32

type checker struct {
	f    *blob.File
	open func(name string) (*blob.File, error)
}

// message calls emit for every field of the message of n bytes at off. For a field of wire type 2, at and n
// are the offset and the number of its bytes. For other types, value is its value. message returns the end of
// the message.
func (c *checker) message(off, n int64, depth int, emit func(field int, wire byte, at, n int64, value uint64) error) (int64, error) {
	if depth > maxNested {
		return 0, flaw.New("its graphs are nested too deeply")
	}
	end := off + n
	r := c.section(off, n)
	for r.pos < end {
		tag, err := r.varint()
		if err != nil {
			return 0, err
		}
		field, wire := tag>>3, byte(tag&7)
		if field == 0 || field > 1<<29 {
			return 0, flaw.New("it is damaged at byte %d", r.pos)
		}
		var value uint64
		at, length := r.pos, int64(0)
		switch wire {
		case 0:
			value, err = r.varint()
		case 1:
			value, err = r.fixed(8)
		case 5:
			value, err = r.fixed(4)
		case 2:
			var size uint64
			if size, err = r.varint(); err == nil {
				if at = r.pos; size > uint64(end-at) {
					return 0, flaw.New("truncated: field %d at byte %d has %d bytes, of which %d are there", field, at, size, end-at)
				}
				length = int64(size)
			}
		default:
			return 0, flaw.New("it is damaged at byte %d", r.pos)
		}
		if err != nil {
			return 0, err
		}
		if err := emit(int(field), wire, at, length, value); err != nil {
			return 0, err
		}
		if length > 0 {
			if err := r.skip(length); err != nil {
				return 0, err
			}
		}
	}
	return r.pos, nil
}

// graph checks a GraphProto: its initializers, and the graphs and tensors in the attributes of its nodes.
func (c *checker) graph(at, n int64, depth int) error {
	_, err := c.message(at, n, depth, func(field int, wire byte, at, n int64, _ uint64) error {
		switch {
		case wire != 2:
			return nil
		case field == 5: // initializer
			return c.tensor(at, n, depth+1)
		case field == 15: // sparse_initializer: values and indices
			_, err := c.message(at, n, depth+1, func(field int, wire byte, at, n int64, _ uint64) error {
				if wire != 2 || field > 2 {
					return nil
				}
				return c.tensor(at, n, depth+2)
			})
			return err
		case field == 1: // node
			return c.node(at, n, depth+1)
		}
		return nil
	})
	return err
}

// node checks the attributes (5) of a NodeProto. An attribute may have a tensor (5), a graph (6), tensors
// (10) or graphs (11).
func (c *checker) node(at, n int64, depth int) error {
	_, err := c.message(at, n, depth, func(field int, wire byte, at, n int64, _ uint64) error {
		if field != 5 || wire != 2 {
			return nil
		}
		_, err := c.message(at, n, depth+1, func(field int, wire byte, at, n int64, _ uint64) error {
			switch {
			case wire != 2:
				return nil
			case field == 5 || field == 10:
				return c.tensor(at, n, depth+2)
			case field == 6 || field == 11:
				return c.graph(at, n, depth+2)
			}
			return nil
		})
		return err
	})
	return err
}

// widths has the bits of an element for each TensorProto.DataType.
var widths = map[uint64]uint64{1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
	17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4}

// kinds has the kind of the numbers for each TensorProto.DataType.
var kinds = map[uint64]finite.Kind{1: finite.F32, 10: finite.F16, 11: finite.F64, 14: finite.F32, 15: finite.F64, 16: finite.BF16, 17: finite.F8E4M3, 19: finite.F8E5M2}

// tensor is a TensorProto.
type tensor struct {
	name      string
	kind      uint64
	elements  uint64
	raw       bool
	at, bytes int64 // offset and length of raw_data
	file      string
	offset    int64
	length    int64 // -1 means the rest of the file
	external  bool
	listed    int64 // bytes of the other fields that have data
}

func (c *checker) tensor(at, n int64, depth int) error {
	t := tensor{elements: 1, length: -1}
	_, err := c.message(at, n, depth, func(field int, wire byte, at, n int64, value uint64) (err error) {
		switch {
		case field == 1 && wire == 0: // dims
			t.dim(value)
		case field == 1 && wire == 2: // packed
			r := c.section(at, n)
			for r.pos < at+n && err == nil {
				value, err = r.varint()
				t.dim(value)
			}
		case field == 2 && wire == 0:
			t.kind = value
		case field == 8 && wire == 2:
			t.name, err = c.text(at, n)
		case field == 9 && wire == 2:
			t.raw, t.at, t.bytes = true, at, n
		case field == 13 && wire == 2:
			err = c.entry(&t, at, n, depth+1)
		case field == 14 && wire == 0:
			t.external = value == 1
		case (field == 4 || field == 10) && wire == 2: // float_data, double_data
			t.listed += n
		}
		return err
	})
	if err == nil {
		err = c.data(t)
	}
	return flaw.Within("tensor "+strconv.Quote(flaw.Short(t.name)), err)
}

func (t *tensor) dim(n uint64) {
	hi, lo := bits.Mul64(t.elements, n)
	if t.elements = lo; hi != 0 || lo > math.MaxInt64/16 {
		t.elements = math.MaxInt64 / 16
	}
}

// entry reads one StringStringEntryProto of external_data.
func (c *checker) entry(t *tensor, at, n int64, depth int) error {
	var key, value string
	_, err := c.message(at, n, depth, func(field int, wire byte, at, n int64, _ uint64) (err error) {
		switch {
		case field == 1 && wire == 2:
			key, err = c.text(at, n)
		case field == 2 && wire == 2:
			value, err = c.text(at, n)
		}
		return err
	})
	if err != nil {
		return err
	}
	number := func() (n int64) {
		if n, err = strconv.ParseInt(value, 10, 64); err != nil || n < 0 {
			err = flaw.New("its %s is %q", key, flaw.Short(value))
		}
		return n
	}
	switch key {
	case "location":
		t.file = value
	case "offset":
		t.offset = number()
	case "length":
		t.length = number()
	}
	return err
}

// data checks where the bytes of a tensor are. If the check is deep, it also reads the numbers.
func (c *checker) data(t tensor) error {
	need := int64(-1)
	if w := widths[t.kind]; w > 0 && t.elements < math.MaxInt64/16 {
		need = int64((t.elements*(w%8) + 7) / 8)
		if w%8 == 0 {
			need = int64(t.elements * (w / 8))
		}
	}
	f, at, n := c.f, t.at, t.bytes
	switch {
	case t.external:
		if !filepath.IsLocal(t.file) {
			return flaw.New("it names the file %q, which is no place", flaw.Short(t.file))
		}
		var err error
		f, err = c.open(t.file)
		if errors.Is(err, fs.ErrNotExist) {
			return flaw.New("its file %s is missing", flaw.Short(t.file))
		}
		if err != nil {
			return err
		}
		if at, n = t.offset, t.length; n < 0 {
			n = f.Size - at
			if need >= 0 {
				n = need
			}
		}
		if n < 0 || at > f.Size || n > f.Size-at {
			return flaw.New("truncated: its file %s has %d bytes, but should have at least %d", flaw.Short(t.file), f.Size, at+max(n, 0))
		}
	case !t.raw:
		if t.listed > 0 {
			c.f.Seen.NoteNumbers("", blob.Numbers{Skipped: 1})
		}
		return nil
	}
	if need >= 0 && n != need {
		return flaw.New("it has %d bytes, but its shape needs %d", n, need)
	}
	scanner := finite.NewScanner(kinds[t.kind], false)
	if !c.f.Seen.IsDeep() || scanner == nil {
		return nil
	}
	if err := f.CopyTo(scanner, at, n); err != nil {
		return err
	}
	c.f.Seen.NoteNumbers(t.name, scanner.Found())
	return nil
}

// maxText bounds a name, in bytes.
const maxText = 4 << 10

func (c *checker) text(at, n int64) (string, error) {
	b, err := c.f.Bytes(at, min(n, maxText))
	return string(b), err
}
