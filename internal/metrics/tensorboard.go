package metrics

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxRecord is the size of the largest record in a file of TensorBoard or W&B that is parsed, in bytes.
// Larger records have images, graphs or similar data.
const maxRecord = 1 << 20

// tensorBoard reads event files. An event file is a sequence of TFRecords. Each has the length of its data,
// the masked CRC32C of the length, the data, and the masked CRC32C of the data. The data is a message
// tensorflow.Event.
type tensorBoard struct {
	rest []byte
	skip uint64 // bytes of a large record that were not yet skipped
	read int64  // bytes that were read
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns a CRC32C in the form that TFRecords use.
func masked(data []byte) uint32 {
	sum := crc32.Checksum(data, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// isTensorBoard reports whether a file begins with a TFRecord.
func isTensorBoard(head []byte) bool {
	return len(head) >= 12 && masked(head[:8]) == binary.LittleEndian.Uint32(head[8:]) && binary.LittleEndian.Uint64(head) > 0
}

func (b *tensorBoard) add(piece []byte, emit func(Point)) error {
	if n := min(b.skip, uint64(len(piece))); n > 0 {
		piece, b.skip, b.read = piece[n:], b.skip-n, b.read+int64(n)
	}
	b.rest = append(b.rest, piece...)
	used := 0
	defer func() { b.rest = append(b.rest[:0], b.rest[used:]...) }()
	for len(b.rest)-used >= 12 {
		at := b.rest[used:]
		length := binary.LittleEndian.Uint64(at)
		if masked(at[:8]) != binary.LittleEndian.Uint32(at[8:]) || length > math.MaxInt64-16 {
			return &DamagedError{b.read, "the checksum of a record's length is wrong"}
		}
		if length > maxRecord {
			whole := length + 16
			n := min(whole, uint64(len(at)))
			used, b.skip, b.read = used+int(n), whole-n, b.read+int64(n)
			continue
		}
		whole := int(length) + 16
		if len(at) < whole {
			return nil // the rest of the record was not written yet
		}
		data := at[12 : 12+length]
		if masked(data) != binary.LittleEndian.Uint32(at[12+length:]) {
			return &DamagedError{b.read, "the checksum of a record is wrong"}
		}
		if !event(data, emit) {
			return &DamagedError{b.read, "a record is no event of TensorBoard"}
		}
		used, b.read = used+whole, b.read+int64(whole)
	}
	return nil
}

// DamagedError is the error for a damaged file. Nothing after Offset is read.
type DamagedError struct {
	Offset int64 // bytes from the beginning of the file
	Reason string
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s, at byte %d", e.Reason, e.Offset) }

// fields parses a protocol buffer message, and reports whether it is valid. It calls the function each once for
// every field: for a number, v is its value; for a text, bytes or a message, b has its bytes.
func fields(message []byte, each func(num protowire.Number, v uint64, b []byte)) bool {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		var v uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var w uint32
			w, n = protowire.ConsumeFixed32(message)
			v = uint64(w)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(num, kind, message)
		}
		if n < 0 {
			return false
		}
		each(num, v, b)
		message = message[n:]
	}
	return true
}

// event reads a tensorflow.Event. Field 1 is the wall time, field 2 the step, and field 5 a summary.
func event(data []byte, emit func(Point)) bool {
	p := Point{}
	var summary []byte
	ok := fields(data, func(num protowire.Number, v uint64, b []byte) {
		switch num {
		case 1:
			p.Time = math.Float64frombits(v)
		case 2:
			p.Step = int64(v)
		case 5:
			summary = b
		}
	})
	return ok && fields(summary, func(num protowire.Number, _ uint64, b []byte) {
		if num != 1 {
			return
		}
		found := false
		p.Series = ""
		well := fields(b, func(num protowire.Number, v uint64, b []byte) {
			switch num {
			case 1:
				p.Series = string(b)
			case 2:
				p.Value, found = float64(math.Float32frombits(uint32(v))), true
			case 8:
				if v, ok := tensor(b); ok {
					p.Value, found = v, true
				}
			}
		})
		if well && found && p.Series != "" && p.Step >= 0 {
			emit(p)
		}
	})
}

// Kinds of elements in a tensorflow.TensorProto.
const (
	tensorFloat  = 1
	tensorDouble = 2
	tensorInt32  = 3
	tensorInt64  = 9
)

// tensor reads a TensorProto with a single number. Its fields are: kind 1, shape 2, content 4, float_val 5,
// double_val 6, int_val 7, int64_val 10.
func tensor(data []byte) (value float64, ok bool) {
	var kind uint64
	single := true
	var content []byte
	var one []float64
	well := fields(data, func(num protowire.Number, v uint64, b []byte) {
		switch num {
		case 1:
			kind = v
		case 2:
			single = fields(b, func(num protowire.Number, _ uint64, b []byte) { // a dimension
				fields(b, func(field protowire.Number, v uint64, _ []byte) {
					single = single && (num != 2 || field != 1 || v == 1)
				})
			}) && single
		case 4:
			content = b
		case 5:
			one = append(one, packed(v, b, 4, func(v uint64) float64 { return float64(math.Float32frombits(uint32(v))) })...)
		case 6:
			one = append(one, packed(v, b, 8, math.Float64frombits)...)
		case 7, 10:
			if b != nil {
				v, _ = protowire.ConsumeVarint(b)
			}
			one = append(one, float64(int64(v)))
		}
	})
	if !well || !single {
		return 0, false
	}
	switch {
	case kind == tensorFloat && len(content) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(content))), true
	case kind == tensorDouble && len(content) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(content)), true
	case kind == tensorInt32 && len(content) == 4:
		return float64(int32(binary.LittleEndian.Uint32(content))), true
	case kind == tensorInt64 && len(content) == 8:
		return float64(int64(binary.LittleEndian.Uint64(content))), true
	case len(content) > 0 || len(one) != 1:
		return 0, false
	}
	return one[0], kind == tensorFloat || kind == tensorDouble || kind == tensorInt32 || kind == tensorInt64
}

// packed returns the numbers of a repeated field whose elements have a fixed width. The field may be packed.
func packed(v uint64, b []byte, width int, of func(uint64) float64) []float64 {
	if b == nil {
		return []float64{of(v)}
	}
	if len(b) != width {
		return []float64{0, 0} // two numbers stand for several: the tensor is no scalar
	}
	if width == 4 {
		return []float64{of(uint64(binary.LittleEndian.Uint32(b)))}
	}
	return []float64{of(binary.LittleEndian.Uint64(b))}
}
