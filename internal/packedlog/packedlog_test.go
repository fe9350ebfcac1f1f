package packedlog

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestUnpackedIsBounded checks that a small file that unpacks to too much data is an error.
func TestUnpackedIsBounded(t *testing.T) {
	for left, want := range map[int64]bool{99: true, 100: false} {
		data, err := io.ReadAll(&unpacked{log: strings.NewReader(strings.Repeat("x", 100)), name: "log.gz", left: left})
		if got := err != nil && strings.Contains(err.Error(), `"log.gz" holds more than 8 GiB`); got != want || len(data) != 100 {
			t.Errorf("%d bytes and %v with %d bytes left", len(data), err, left)
		}
	}
}

// TestOpenKeepsErrors checks that a log that cannot be read does not count as a log of an unknown format.
func TestOpenKeepsErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Open("log", io.MultiReader(strings.NewReader("ab"), errorReader{broken}), nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
