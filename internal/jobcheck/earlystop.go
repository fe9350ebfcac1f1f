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

// inVain adds an error for each setting about curves that can have no effect.
func inVain(s job.Spec, errs *faults) {
	for part := range strings.SplitSeq(string(s.EarlyStop), ",") {
		kind, action, _ := strings.Cut(part, "=")
		switch {
		case action != string(job.EarlyEnd):
		case kind == "slower", kind == "below-peers":
			errs.bad("early-stop %s=stop stops nothing, because this verdict is never sure: write %s=advise", kind, kind)
		case (kind == "reached" || kind == "will-miss") && s.Curve.Target == "":
			errs.bad("early-stop %s=stop needs a target: add curve.target (--target)", kind)
		}
	}
}
