package gang

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/agent/progress"
	"github.com/gangrun/gangrun/internal/agent/report"
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

// TestWatchBeats checks that a gang whose ranks print lines without progress is reported once. Progress that ranks
// report themselves must be found within beatEvery.
func TestWatchBeats(t *testing.T) {
	var sent replies
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		g := &Gang{Config: Config{Host: "h1", Reports: &report.Queue{}}}
		for number := range 2 {
			r := &Rank{number: number, progress: &progress.Rank{Emit: func(job.Progress) {}}}
			g.ranks = append(g.ranks, r)
		}
		path := filepath.Join(t.TempDir(), "heartbeat")
		beats, program, err := progress.NewBeats(g.ranks[1].progress, path)
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		defer beats.Close()
		g.ranks[1].beats = beats
		watched := make(chan struct{})
		go func() { defer close(watched); g.watchBeats(ctx) }()
		(&progress.Scanner{Rank: g.ranks[0].progress}).Scan([]byte(strings.Repeat("a line\n", unreadLines)))
		time.Sleep(3 * unreadTime)
		if _, err := fmt.Fprintln(program, "gangrun: progress 7"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * beatEvery)
		synctest.Wait()
		if s := g.ranks[1].progress.Sample(); s.Latest == nil || s.Latest.Step != 7 || s.Beats != 2 {
			t.Errorf("found %+v, want step 7 and two heartbeats", s)
		}
		g.ranks[1].progress.Flush()
		cancel()
		<-watched
		g.Reports.Done(nil)
		if err := g.Reports.Send(context.Background(), &sent); err != nil {
			t.Fatal(err)
		}
	})
	reports := 0
	for _, e := range sent[0].Events {
		if strings.Contains(string(e), `"kind":"unread"`) {
			reports++
		}
	}
	if reports != 1 {
		t.Errorf("%d reports that nothing was progress, want 1", reports)
	}
}
