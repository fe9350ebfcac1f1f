package screen

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// BenchmarkOutput measures pieces of 32 KiB from one of eight ranks.
func BenchmarkOutput(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"short", "step 1200/10000 loss=2.3125 lr=0.0003 tokens/s=182034 mem=61.2GiB\n"},
		{"tiny", "ok\n"},
		{"utf8", "étape 1200 — perte 2,3125 — 学習中 — débit 182 034 jetons/s\n"},
		{"colour", "\x1b[32mINFO\x1b[0m step 1200/10000 \x1b[1mloss\x1b[0m=2.3125 lr=0.0003\n"},
		{"bar", "\r 12%|####      | 120/1000 [00:10<01:20, 11.2it/s]"},
		{"long", string(bytes.Repeat([]byte("x"), 32<<10))},
	} {
		for _, raw := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/raw=%t", c.name, raw), func(b *testing.B) {
				s := New(Options{Out: Stream{W: io.Discard, Colour: !raw}, Err: Stream{W: io.Discard}, Ranks: 8, Prefix: !raw})
				chunk := bytes.Repeat([]byte(c.line), max(1, 32<<10/len(c.line)))
				b.SetBytes(int64(len(chunk)))
				b.ReportAllocs()
				for b.Loop() {
					if err := s.Output(3, "h2", false, chunk); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
