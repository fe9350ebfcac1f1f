package retry

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// AfterDivergence returns the verdict on an attempt whose model has diverged. The job must be one that goes back to
// an earlier checkpoint after a divergence.
func (p Policy) AfterDivergence(history []Past, latest Past, now time.Time) job.Verdict {
	done := 0
	for _, before := range history {
		if CategoryOf(before.Cause) == job.ModelDiverged {
			done++
		}
	}
	v := job.Verdict{Action: job.Restart, Wait: job.Duration(BackoffBase), Avoid: latest.Spoilt}
	switch {
	case done >= p.Diverge:
		return Stop("%s again, and retry-on-diverge is used up (%d of %d)", job.ModelDiverged, done, p.Diverge)
	case latest.Next == nil:
		return Stop("%s, and there is no good checkpoint from before", job.ModelDiverged)
	case !p.Deadline.IsZero() && !now.Add(time.Duration(v.Wait)).Before(p.Deadline):
		return spent("%s, and the time limit comes before a restart", job.ModelDiverged)
	}
	v.Reason = fmt.Sprintf("%s: going back to %s (retry %d of %d)", job.ModelDiverged, filepath.Base(latest.Next.Path), done+1, p.Diverge)
	return v
}
