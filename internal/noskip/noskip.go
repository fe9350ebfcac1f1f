// Package noskip skips tests that need what a machine lacks. If GANGRUN_TEST_NOSKIP=1 is set,
// as "make test" does, such a test fails instead.
package noskip

import (
	"os"
	"testing"
)

// Env is the name of an environment variable. If its value is 1, Skip makes the test fail.
const Env = "GANGRUN_TEST_NOSKIP"

// Skip ends the test because the machine lacks something, which the format and its arguments
// name. The test is skipped, or fails if Env is set to 1.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(Env) == "1" {
		t.Fatalf(format+" ("+Env+"=1: no test may be skipped)", args...)
	}
	t.Skipf(format, args...)
}
