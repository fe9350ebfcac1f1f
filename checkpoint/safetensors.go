package checkpoint

import (
	"encoding/json"
	"errors"
	"io"
	"math/bits"

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

// checkSafetensors checks a .safetensors file: the length of its header, the
// header, and that its tensors fill exactly what follows.
func checkSafetensors(f *file) error {
	head, err := f.bytes(0, 8)
	if err != nil {
		return flaw.Truncated("its header", err)
	}
	n := le.Uint64(head)
	if n > maxSafetensorsHeader {
		return flaw.New("its header claims to have %d bytes, but may have %d", n, maxSafetensorsHeader)
	}
	if int64(n) > f.size-8 {
		return flaw.New("truncated: it ends within its header")
	}
	last, sum, err := readSafetensors(io.NewSectionReader(f, 8, int64(n)))
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
	if have := uint64(f.size) - 8 - n; have != last {
		return flaw.New("truncated: it has %d bytes of tensors, but its header says %d", have, last)
	}
	return nil
}

// readSafetensors reads a header. It returns the end of the last tensor and
// the sum of all their sizes, in bytes.
func readSafetensors(r io.Reader) (last, sum uint64, err error) {
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
		var tensor struct {
			Dtype   string   `json:"dtype"`
			Shape   []uint64 `json:"shape"`
			Offsets []uint64 `json:"data_offsets"`
		}
		if err := d.Decode(&tensor); err != nil {
			return 0, 0, err
		}
		if len(tensor.Offsets) != 2 || tensor.Offsets[0] > tensor.Offsets[1] || tensor.Offsets[1] > 1<<62 {
			return 0, 0, flaw.New("tensor %q has no place", flaw.Short(name))
		}
		n := tensor.Offsets[1] - tensor.Offsets[0]
		if width := safetensorsBits[tensor.Dtype]; width > 0 && !holds(n, width, tensor.Shape) {
			return 0, 0, flaw.New("tensor %q has %d bytes, which is not what %s %v needs", flaw.Short(name), n, tensor.Dtype, tensor.Shape)
		}
		last, sum = max(last, tensor.Offsets[1]), sum+n
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
