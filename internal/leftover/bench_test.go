package leftover

import (
	"os"
	"testing"
)

func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		Read().Find(os.Getpid(), "", Look)
	}
}
