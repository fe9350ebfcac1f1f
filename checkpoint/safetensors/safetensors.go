// Package safetensors checks files in the safetensors format.
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

// maxSafetensorsHeader is the limit of the format's own library for the header, in bytes.
const maxSafetensorsHeader = 100_000_000

// safetensorsBits has the bits of an element for each dtype. For other dtypes, the size of a tensor is not
// checked.
var safetensorsBits = map[string]uint64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
	"U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
	"U64": 64, "I64": 64, "F64": 64, "C64": 64,
}

// Check checks the header of a file, and that the tensors fill the rest of the file exactly.
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

// Names calls emit with the name of every tensor. The file must be complete.
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

// tensor is a tensor in the header.
type tensor struct {
	name, dtype string
	begin, end  uint64 // offsets after the header
}

// readSafetensors reads a header. It returns the end of the last tensor and the sizes of all tensors
// together, in bytes. It calls emit for every tensor, unless emit is nil.
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

// orFlaw returns err if it is not nil, and otherwise a flaw.
func orFlaw(err error, text string) error {
	if err != nil {
		return err
	}
	return flaw.Flaw(text)
}

// holds reports whether a tensor of that shape needs exactly n bytes.
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
