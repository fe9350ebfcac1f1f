package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or is the program that they bring to a host.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SelfCheck {
		os.Exit(selfCheck(os.Args[2:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { removeBuilds(); os.Exit(code) }))
}

func selfCheck(hash []string) int {
	if len(hash) == 0 {
		return 0
	}
	data, err := os.ReadFile("/proc/self/exe")
	if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != hash[0] {
		return 1
	}
	return 0
}
