// Package finite finds NaN and infinite numbers in tensors.
package finite

import (
	"encoding/binary"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/blob"
)

// Kind is a type of floating-point numbers. Numbers of other types are always finite.
type Kind int

// The kinds of numbers.
const (
	None Kind = iota
	F8E4M3
	F8E5M2
	F16
	BF16
	F32
	F64
	// Unknown is for numbers whose type is not known.
	Unknown
)

// kinds has the kind of each type, by its name in torch, safetensors and numpy. A complex number counts as
// two numbers.
var kinds = map[string]Kind{
	"DoubleStorage": F64, "FloatStorage": F32, "HalfStorage": F16, "BFloat16Storage": BF16,
	"ComplexDoubleStorage": F64, "ComplexFloatStorage": F32, "UntypedStorage": Unknown,
	"F8_E5M2": F8E5M2, "F8_E4M3": F8E4M3, "F16": F16, "BF16": BF16, "F32": F32, "F64": F64, "C64": F32,
	"f2": F16, "f4": F32, "f8": F64, "c8": F32, "c16": F64,
}

// KindOf returns the kind of a type. name is the name of a class of torch's storages, a dtype of safetensors,
// or a simple dtype of numpy such as ">f4". Only dtypes of numpy can be big-endian.
func KindOf(name string) (k Kind, bigEndian bool) {
	return kinds[strings.TrimLeft(name, "<>|=")], strings.HasPrefix(name, ">")
}

// lane describes the numbers of a kind in a word of 64 bits.
type lane struct {
	width    int    // bytes of a number
	exponent uint64 // the bits of the exponents
	one      uint64 // added to the exponents, it sets the bit of sign of each number whose exponent bits are all 1
	sign     uint64
}

var lanes = map[Kind]lane{
	F8E4M3: {1, 0x7878787878787878, 0x0808080808080808, 0x8080808080808080},
	F8E5M2: {1, 0x7c7c7c7c7c7c7c7c, 0x0404040404040404, 0x8080808080808080},
	F16:    {2, 0x7c007c007c007c00, 0x0400040004000400, 0x8000800080008000},
	BF16:   {2, 0x7f807f807f807f80, 0x0080008000800080, 0x8000800080008000},
	F32:    {4, 0x7f8000007f800000, 0x0080000000800000, 0x8000000080000000},
	F64:    {8, 0x7ff0000000000000, 0x0010000000000000, 0x8000000000000000},
}

// Scanner counts the numbers that are not finite among the numbers whose bytes are written to it.
type Scanner struct {
	kind  Kind
	lane  lane
	order binary.ByteOrder
	rest  []byte // bytes that are not yet a word
	bytes int64
	found blob.Numbers
}

// NewScanner returns a Scanner for numbers of kind k. It returns nil if k is None or Unknown.
func NewScanner(k Kind, bigEndian bool) *Scanner {
	l, ok := lanes[k]
	if !ok {
		return nil
	}
	s := &Scanner{kind: k, lane: l, order: binary.LittleEndian, rest: make([]byte, 0, 8)}
	if bigEndian {
		s.order = binary.BigEndian
	}
	return s
}

// Write counts the numbers in the next bytes that are not finite. It never fails.
func (s *Scanner) Write(p []byte) (int, error) {
	n := len(p)
	s.bytes += int64(n)
	if len(s.rest) > 0 {
		m := min(8-len(s.rest), len(p))
		s.rest = append(s.rest, p[:m]...)
		if p = p[m:]; len(s.rest) < 8 {
			return n, nil
		}
		s.word(s.order.Uint64(s.rest))
		s.rest = s.rest[:0]
	}
	exponent, one, sign := s.lane.exponent, s.lane.one, s.lane.sign
	if s.order == binary.BigEndian { // a carry must go from lower to higher bits
		for ; len(p) >= 8; p = p[8:] {
			s.word(binary.BigEndian.Uint64(p))
		}
	}
	for ; len(p) >= 32; p = p[32:] {
		a, b := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		c, d := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		if ((a&exponent+one)|(b&exponent+one)|(c&exponent+one)|(d&exponent+one))&sign != 0 {
			s.word(a)
			s.word(b)
			s.word(c)
			s.word(d)
		}
	}
	for ; len(p) >= 8; p = p[8:] {
		s.word(binary.LittleEndian.Uint64(p))
	}
	s.rest = append(s.rest, p...)
	return n, nil
}

// word counts in one word.
func (s *Scanner) word(w uint64) {
	l := s.lane
	if (w&l.exponent+l.one)&l.sign == 0 {
		return
	}
	bits := 8 * l.width
	mask := ^uint64(0) >> (64 - bits)
	fraction := mask &^ (l.exponent | l.sign)
	for range 8 / l.width {
		x := w & mask
		if w >>= bits % 64; bits == 64 {
			w = 0
		}
		switch {
		case x&l.exponent != l.exponent&mask:
		case s.kind == F8E4M3: // this kind has no Inf
			if x&fraction == fraction {
				s.found.NaN++
			}
		case x&fraction != 0:
			s.found.NaN++
		case x&l.sign != 0:
			s.found.NegInf++
		default:
			s.found.PosInf++
		}
	}
}

// Found returns the counts. Write must not be called after it.
func (s *Scanner) Found() blob.Numbers {
	if len(s.rest) > 0 {
		s.rest = append(s.rest, make([]byte, 8-len(s.rest))...)
		if s.order == binary.BigEndian {
			s.word(binary.BigEndian.Uint64(s.rest))
		} else {
			s.word(binary.LittleEndian.Uint64(s.rest))
		}
		s.rest = s.rest[:0]
	}
	s.found.Scanned = s.bytes / int64(s.lane.width)
	return s.found
}
