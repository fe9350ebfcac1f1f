// Package noskip lets tests skip what a machine lacks, except where none may be
// skipped: "make test" sets GANGRUN_TEST_NOSKIP=1.
package noskip

import (
	"os"
	"testing"
)

// Env is the environment variable that, set to 1, makes a skip a failure.
const Env = "GANGRUN_TEST_NOSKIP"

// Skip ends the test because the machine lacks what the format and its
// arguments say: as skipped, or as failed where no test may be skipped.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(Env) == "1" {
		t.Fatalf(format+" ("+Env+"=1: no test may be skipped)", args...)
	}
	t.Skipf(format, args...)
}
