package testbuild

import (
	"os"
	"strings"
	"testing"
)

// TestTags: with other tags than make build has, tests would compile every package again.
func TestTags(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "\nTAGS := "+tags+"\n") {
		t.Errorf("the Makefile has other tags than %s", tags)
	}
}
