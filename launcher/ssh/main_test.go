package ssh

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/selfcheck"
)

// TestMain runs the tests, or is the program that they bring to a host.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "self-check" {
		os.Exit(selfcheck.Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { removeBuilds(); os.Exit(code) }))
}
