//go:build soak

package topology

import (
	"os"
	"testing"
)

// TestSoakDocumentPlacement computes every figure of the page again.
func TestSoakDocumentPlacement(t *testing.T) {
	page, err := os.ReadFile(simulationPath)
	if err != nil {
		t.Fatal(err)
	}
	f, err := simulateAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := document(f); string(page) != want {
		t.Errorf("%s is not what the simulation writes: run UPDATE=1 go test -run '^TestDocument' ./topology\n%s", simulationPath, difference(string(page), want))
	}
}
