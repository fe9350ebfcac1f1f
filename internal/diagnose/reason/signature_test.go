package reason

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// TestSignatures checks that there is a rule for every reason.
func TestSignatures(t *testing.T) {
	known := map[string]bool{}
	for _, r := range rules.All() {
		known[r.Signature] = true
	}
	all := []string{"no-space", "native-out-of-memory", "connect-failed", "bad-format", "mpi-call", "command-not-found", "missing-output-directory", "output-is-directory"}
	for _, f := range faults {
		all = append(all, f.signature)
	}
	for _, f := range gpuFaults {
		all = append(all, f.signature)
	}
	for _, t := range topics {
		all = append(all, t.signature)
	}
	for _, s := range all {
		if !known[s] {
			t.Errorf("there is no rule with the signature %s", s)
		}
	}
}
