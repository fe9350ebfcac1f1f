package supervisor

import "github.com/gangrun/gangrun/internal/job"

// told is what the notes of a run have said.
type told struct {
	unsaved bool // that the journal cannot be written
	unread  unread
}

// unread decides whether the user is told that no line of the job's output was recognised as
// progress. The zero value is ready for the events of a run.
type unread struct {
	attempt int
	read    bool // the attempt has reported progress
	said    bool
}

// add takes the next event of the attempt. It returns whether the user is to be told now: once in a run,
// when a host's ranks have printed lines for a while, and no rank of the gang has reported progress.
func (u *unread) add(e job.Event) bool {
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

// noteUnread is what the user is told. A job that has a pattern of its own needs another one.
func noteUnread(pattern string) string {
	if pattern != "" {
		return "no line of the output matches the progress pattern " + pattern
	}
	return "no progress lines recognised; add progress: PATTERN to the job file, or --progress PATTERN"
}
