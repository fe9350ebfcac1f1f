// Package selfcheck lets a program that was put on a host show that it runs there.
package selfcheck

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// Main is the hidden command "self-check [HASH]", by which it is seen on a host that
// this program runs there, and that its SHA-256 is HASH. It returns the exit code.
func Main(args []string) int {
	if len(args) == 0 {
		return 0
	}
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return 1
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil || len(args) != 1 || hex.EncodeToString(sum.Sum(nil)) != args[0] {
		return 1
	}
	return 0
}
