package supervisor

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestUnread(t *testing.T) {
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
		var u unread
		for i, e := range c.events {
			if got := u.add(e); got != c.want[i] {
				t.Errorf("%s: event %d: %v, want %v", c.name, i, got, c.want[i])
			}
		}
	}
}

// The user is told once in a run, and the journal has only the note.
func TestUnreadIsNoted(t *testing.T) {
	for pattern, want := range map[string]string{
		"":            "no progress lines recognised; add progress: PATTERN to the job file, or --progress PATTERN",
		`(?P<step>x)`: "no line of the output matches the progress pattern (?P<step>x)",
	} {
		first := dies(signalled(1, 9), job.Killed, -1)
		first.unread = []string{"h1", "h2"}
		second := works()
		second.unread = []string{"h1"}
		w := newWorld(t, first, second)
		w.spec.Progress = pattern
		w.run(t)
		var notes []string
		for _, e := range w.events {
			switch e.Kind {
			case job.KindUnread:
				t.Error("the journal has the event of a host")
			case job.KindNote:
				notes = append(notes, e.Text)
			}
		}
		if !slices.Contains(notes, want) || strings.Count(strings.Join(notes, "\n"), want) != 1 {
			t.Errorf("the notes are %q, want %q once", notes, want)
		}
	}
}
