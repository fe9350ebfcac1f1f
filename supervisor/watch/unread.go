package watch

import "github.com/gangrun/gangrun/internal/job"

// Unread decides whether the user is told that no line of the job's output was recognised as
// progress. The zero value is ready for the events of a run.
type Unread struct {
	attempt int
	read    bool // the attempt has reported progress
	said    bool
}

// Add takes the next event of the attempt. It returns whether the user is to be told now: once in a run,
// when a host's ranks have printed lines for a while, and no rank of the gang has reported progress.
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

// UnreadText is what the user is told. A job that has a pattern of its own needs another one.
func UnreadText(pattern string) string {
	if pattern != "" {
		return "no line of the output matches the progress pattern " + pattern
	}
	return "no progress lines recognised; add progress: PATTERN to the job file, or --progress PATTERN"
}
