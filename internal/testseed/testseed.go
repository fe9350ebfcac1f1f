// Package testseed reads the settings of random tests from the environment: SEED and COUNT.
package testseed

import (
	"os"
	"strconv"
	"testing"
)

// Number returns the number in an environment variable. If the variable is not set, it returns preset.
func Number(t testing.TB, name string, preset uint64) uint64 {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return preset
	}
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		t.Fatalf("%s=%q is no number: %v", name, value, err)
	}
	return n
}
