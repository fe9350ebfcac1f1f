package watch

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestUnreadOutput checks that the user gets the note once, and only if no rank of the attempt has reported progress.
func TestUnreadOutput(t *testing.T) {
	unreadOf := func(attempt int) job.Event { return job.Event{Kind: job.KindUnread, Attempt: attempt, Host: "h1"} }
	progressOf := func(attempt int) job.Event {
		return job.Event{Kind: job.KindProgress, Attempt: attempt, Progress: &job.Progress{}}
	}
	for _, c := range []struct {
		name   string
		events []job.Event
		want   []bool
	}{
		{"no progress", []job.Event{unreadOf(1)}, []bool{true}},
		{"once for all hosts and attempts", []job.Event{unreadOf(1), unreadOf(1), unreadOf(2)}, []bool{true, false, false}},
		{"a rank on another host has progress", []job.Event{progressOf(1), unreadOf(1)}, []bool{false, false}},
		{"only the attempt before had progress", []job.Event{progressOf(1), unreadOf(2)}, []bool{false, true}},
		{"other events", []job.Event{{Kind: job.KindStarted, Attempt: 1}, {Kind: job.KindNote, Attempt: 1}}, []bool{false, false}},
	} {
		var u Unread
		for i, e := range c.events {
			if got := u.Add(e); got != c.want[i] {
				t.Errorf("%s: event %d: %v, want %v", c.name, i, got, c.want[i])
			}
		}
	}
}
