// Package safetensors checks .safetensors files.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/bits"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// maxSafetensorsHeader bounds the header, in bytes, as the format's own
// library does.
const maxSafetensorsHeader = 100_000_000

// safetensorsBits are the bits of an element by its dtype; of others only the
// offsets are checked.
var safetensorsBits = map[string]uint64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
	"U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
	"U64": 64, "I64": 64, "F64": 64, "C64": 64,
}

// Check checks a .safetensors file: the length of its header, the
// header, and that its tensors fill exactly what follows.
func Check(f *blob.File) error {
	head, err := f.Bytes(0, 8)
	if err != nil {
		return flaw.Truncated("its header", err)
	}
	n := binary.LittleEndian.Uint64(head)
	if n > maxSafetensorsHeader {
		return flaw.New("its header claims to have %d bytes, but may have %d", n, maxSafetensorsHeader)
	}
	if int64(n) > f.Size-8 {
		return flaw.New("truncated: it ends within its header")
	}
	last, sum, err := readSafetensors(io.NewSectionReader(f, 8, int64(n)), nil)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) || err == io.EOF || err == io.ErrUnexpectedEOF {
		return flaw.New("its header is no JSON of tensors: %v", err)
	}
	if err != nil {
		return err
	}
	if last != sum {
		return flaw.New("its tensors overlap or leave gaps")
	}
	if have := uint64(f.Size) - 8 - n; have != last {
		return flaw.New("truncated: it has %d bytes of tensors, but its header says %d", have, last)
	}
	if !f.Seen.IsDeep() {
		return nil
	}
	_, _, err = readSafetensors(io.NewSectionReader(f, 8, int64(n)), func(t tensor) error {
		kind, _ := finite.KindOf(t.dtype)
		scanner := finite.NewScanner(kind, false)
		if scanner == nil {
			return nil
		}
		if err := f.CopyTo(scanner, 8+int64(n+t.begin), int64(t.end-t.begin)); err != nil {
			return err
		}
		f.Seen.NoteNumbers(t.name, scanner.Found())
		return nil
	})
	return err
}

// Names calls emit for the name of every tensor of a file that is whole.
func Names(f *blob.File, emit func(name string)) error {
	head, err := f.Bytes(0, 8)
	if err != nil {
		return flaw.Truncated("its header", err)
	}
	n := binary.LittleEndian.Uint64(head)
	if n > maxSafetensorsHeader {
		return flaw.New("its header claims to have %d bytes, but may have %d", n, maxSafetensorsHeader)
	}
	_, _, err = readSafetensors(io.NewSectionReader(f, 8, int64(n)), func(t tensor) error {
		emit(t.name)
		return nil
	})
	return err
}

// tensor is what a header says of one.
type tensor struct {
	name, dtype string
	begin, end  uint64 // offsets behind the header
}

// readSafetensors reads a header. It returns the end of the last tensor and
// the sum of all their sizes, in bytes. It calls emit, if it is not nil, for every tensor.
func readSafetensors(r io.Reader, emit func(tensor) error) (last, sum uint64, err error) {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, 0, orFlaw(err, "its header is no JSON object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return 0, 0, err
		}
		name, _ := t.(string)
		if name == "__metadata__" {
			var any map[string]json.RawMessage
			if err := d.Decode(&any); err != nil {
				return 0, 0, err
			}
			continue
		}
		var place struct {
			Dtype   string   `json:"dtype"`
			Shape   []uint64 `json:"shape"`
			Offsets []uint64 `json:"data_offsets"`
		}
		if err := d.Decode(&place); err != nil {
			return 0, 0, err
		}
		if len(place.Offsets) != 2 || place.Offsets[0] > place.Offsets[1] || place.Offsets[1] > 1<<62 {
			return 0, 0, flaw.New("tensor %q has no place", flaw.Short(name))
		}
		n := place.Offsets[1] - place.Offsets[0]
		if width := safetensorsBits[place.Dtype]; width > 0 && !holds(n, width, place.Shape) {
			return 0, 0, flaw.New("tensor %q has %d bytes, which is not what %s %v needs", flaw.Short(name), n, place.Dtype, place.Shape)
		}
		if emit != nil {
			if err := emit(tensor{name, place.Dtype, place.Offsets[0], place.Offsets[1]}); err != nil {
				return 0, 0, err
			}
		}
		last, sum = max(last, place.Offsets[1]), sum+n
	}
	if _, err := d.Token(); err != nil {
		return 0, 0, err
	}
	if _, err := d.Token(); err != io.EOF {
		return 0, 0, orFlaw(err, "more follows its header")
	}
	return last, sum, nil
}

// orFlaw returns err, or a flaw when there is none.
func orFlaw(err error, text string) error {
	if err != nil {
		return err
	}
	return flaw.Flaw(text)
}

// holds reports whether n bytes are what a tensor of that shape needs.
func holds(n, width uint64, shape []uint64) bool {
	total := width
	for _, d := range shape {
		hi, lo := bits.Mul64(total, d)
		if hi != 0 {
			return false
		}
		total = lo
	}
	return total%8 == 0 && total/8 == n
}
