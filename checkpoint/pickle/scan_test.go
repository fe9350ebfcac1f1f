package pickle

import (
	"bufio"
	"strings"
	"testing"
)

// TestLengths checks which lengths of an item are possible. Only those of a BINSTRING and a LONG4 have a sign. The pickles
// end within the item.
func TestLengths(t *testing.T) {
	for op, possible := range map[byte]bool{opBinBytes: true, opBinUnicode: true, opBinString: false, opLong4: false} {
		for _, length := range []string{"\xff\xff\xff\x7f", "\x00\x00\x00\x80", "\xff\xff\xff\xff"} {
			err := Scan(bufio.NewReader(strings.NewReader(string([]byte{op})+length+"beginning")), nil)
			want := "truncated"
			if !possible && length[3] >= 0x80 {
				want = "impossible length"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("opcode %q with the length %x: got %v, want %s", op, length, err, want)
			}
		}
	}
}
