package jobcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// EarlyStop returns an error if e is not valid.
func EarlyStop(e job.EarlyStop) error {
	if e == "" || slices.Contains(job.EarlyActions(), job.EarlyAction(e)) {
		return nil
	}
	for part := range strings.SplitSeq(string(e), ",") {
		kind, action, _ := strings.Cut(part, "=")
		if !slices.Contains(job.CurveKinds(), kind) || !slices.Contains(job.EarlyActions(), job.EarlyAction(action)) {
			return fmt.Errorf("early-stop %q wants VERDICT=off, advise or stop, not %q", e, part)
		}
	}
	return nil
}
