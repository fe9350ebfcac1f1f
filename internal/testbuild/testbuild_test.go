package testbuild

import (
	"os"
	"strings"
	"testing"
)

// TestTags checks that tests build gangrun with the same tags as "make build". With other tags, every package would be
// compiled again.
func TestTags(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "\nTAGS := "+tags+"\n") {
		t.Errorf("the Makefile has other tags than %s", tags)
	}
}
