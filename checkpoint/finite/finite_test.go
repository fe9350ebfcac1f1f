package finite

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gangrun/gangrun/checkpoint/blob"
)

// special has numbers of each kind: NaN, +Inf, -Inf and the largest finite number.
var special = map[Kind][4]uint64{
	F64:    {math.Float64bits(math.NaN()), math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), math.Float64bits(math.MaxFloat64)},
	F32:    {0x7fc00001, 0x7f800000, 0xff800000, 0x7f7fffff},
	F16:    {0x7e00, 0x7c00, 0xfc00, 0x7bff},
	BF16:   {0xffc0, 0x7f80, 0xff80, 0x7f7f},
	F8E5M2: {0x7f, 0x7c, 0xfc, 0x7b},
	F8E4M3: {0xff, 0, 0, 0x7e},
}

// TestScanner writes finite numbers, and some that are not finite, in pieces of random sizes. It compares the
// counts.
func TestScanner(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for kind, values := range special {
		for round := range 200 {
			big := round%2 == 1
			order := binary.AppendByteOrder(binary.LittleEndian)
			if big {
				order = binary.BigEndian
			}
			want := blob.Numbers{Scanned: int64(rnd.IntN(300))}
			var b []byte
			for range want.Scanned {
				x := values[3]
				switch rnd.IntN(20) {
				case 0:
					x = values[0]
					want.NaN++
				case 1:
					if x = values[1]; x != 0 {
						want.PosInf++
					}
				case 2:
					if x = values[2]; x != 0 {
						want.NegInf++
					}
				case 3:
					x = 0
				}
				switch lanes[kind].width {
				case 1:
					b = append(b, byte(x))
				case 2:
					b = order.AppendUint16(b, uint16(x))
				case 4:
					b = order.AppendUint32(b, uint32(x))
				default:
					b = order.AppendUint64(b, x)
				}
			}
			s := NewScanner(kind, big)
			for rest := b; len(rest) > 0; {
				n := min(len(rest), 1+rnd.IntN(100))
				if m, err := s.Write(rest[:n]); m != n || err != nil {
					t.Fatal(m, err)
				}
				rest = rest[n:]
			}
			if got := s.Found(); got != want {
				t.Fatalf("kind %d: %+v, want %+v", kind, got, want)
			}
		}
	}
}

func TestKindOf(t *testing.T) {
	for name, want := range map[string]Kind{"<f4": F32, ">f8": F64, "|i1": None, "<c16": F64, "LongStorage": None, "BFloat16Storage": BF16, "UntypedStorage": Unknown, "F8_E4M3": F8E4M3} {
		if k, big := KindOf(name); k != want || big != (name == ">f8") {
			t.Errorf("%s is %d, %t", name, k, big)
		}
	}
	if NewScanner(None, false) != nil || NewScanner(Unknown, false) != nil {
		t.Error("there is a scanner of what cannot be scanned")
	}
}

func BenchmarkScanner(b *testing.B) {
	p := slices.Repeat([]byte{0x00, 0x00, 0x80, 0x3f}, 64<<10)
	s := NewScanner(F32, false)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		s.Write(p)
	}
}
