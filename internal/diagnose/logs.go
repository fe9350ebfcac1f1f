package diagnose

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Logs finds the cause of a failure in logs alone: how the ranks ended is not known. Looks says whether the job
// looks failed.
func Logs(e job.Evidence) job.Cause {
	c := Diagnose(e)
	c.Looks = job.LooksFailed
	if c.Category == "" {
		c.Looks = job.LooksSuccessful
	}
	c.Evidence, c.After = undated(c.Evidence), undated(c.After)
	return c
}

// undated returns copies of lines without their times: those of logs lack the year.
func undated(lines []job.Line) []job.Line {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i].Time = time.Time{}
	}
	return lines
}
