package supervisor

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestUnreadIsNoted checks that the user gets the note once in a run, and that the journal has only the note.
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
