package diagnose

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

// Logs finds the cause of a failure if there are only logs, so that it is not known how the ranks ended. It
// uses the rules of book. The field Looks of the Cause says whether the job seems to have failed or succeeded.
func Logs(book *rule.Book, e job.Evidence) job.Cause {
	e.Lines = logtext.LastAttempt(e.Lines)
	c := With(book, e)
	c.Looks = job.LooksFailed
	if c.Category == "" && !saysFailed(e, book) {
		c.Looks = job.LooksSuccessful
	}
	c.Evidence, c.After = logtext.Undated(c.Evidence), logtext.Undated(c.After)
	return c
}

// saysFailed reports whether a log says that the job failed, even without a reason.
func saysFailed(e job.Evidence, book *rule.Book) bool {
	members, _ := sortOut(e, book)
	return slices.ContainsFunc(members, func(m *member) bool {
		return slices.ContainsFunc(m.streams, func(s *stream) bool { return s.log().Failed() })
	})
}
