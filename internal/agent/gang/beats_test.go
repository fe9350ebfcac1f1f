package gang

import (
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/job"
)

func TestUnread(t *testing.T) {
	begun := time.Unix(1000, 0)
	late := begun.Add(unreadTime)
	quiet := progress.Sample{}
	printed := func(lines int64, first time.Time) progress.Sample { return progress.Sample{Lines: lines, First: first} }
	for _, c := range []struct {
		name string
		all  []progress.Sample
		now  time.Time
		want bool
	}{
		{"no output", []progress.Sample{quiet, quiet}, late.Add(time.Hour), false},
		{"much for long", []progress.Sample{printed(unreadLines, begun)}, late, true},
		{"several ranks together", []progress.Sample{quiet, printed(unreadLines-1, begun), printed(1, late)}, late, true},
		{"few lines", []progress.Sample{printed(unreadLines-1, begun)}, late.Add(time.Hour), false},
		{"not for long", []progress.Sample{printed(10*unreadLines, begun.Add(time.Second))}, late, false},
		{"one rank has progress", []progress.Sample{printed(unreadLines, begun), {Latest: &job.Progress{}}}, late, false},
		{"one rank has heartbeats", []progress.Sample{printed(unreadLines, begun), {Beats: 1}}, late, false},
	} {
		if got := unread(c.all, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
