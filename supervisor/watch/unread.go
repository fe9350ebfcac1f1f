package watch

import "github.com/gangrun/gangrun/internal/job"

// Unread decides when gangrun tells the user that it has recognised no line of the job's output as progress.
// The zero value is ready for the events of a run.
type Unread struct {
	attempt int
	read    bool // the attempt has reported progress
	said    bool
}

// Add adds the next event of the run. It reports whether gangrun should tell the user now. It returns true at
// most once in a run: when the ranks of a host have printed lines for a while, and no rank of the gang has
// reported progress.
func (u *Unread) Add(e job.Event) bool {
	if e.Attempt != u.attempt {
		u.attempt, u.read = e.Attempt, false
	}
	switch e.Kind {
	case job.KindProgress:
		u.read = true
	case job.KindUnread:
		if !u.read && !u.said {
			u.said = true
			return true
		}
	}
	return false
}

// UnreadText returns the message that no line of the output was recognised as progress (see Unread). The
// message is a different one for a job that has a progress pattern of its own.
func UnreadText(pattern string) string {
	if pattern != "" {
		return "no line of the output matches the progress pattern " + pattern
	}
	return "no progress lines recognised; add progress: PATTERN to the job file, or --progress PATTERN"
}
