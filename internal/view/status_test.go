package view

import (
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestStatusOfSilentHost: the status shows beside its ranks that a host is silent. It does so from the last
// contact until there is contact again, or the host is lost.
func TestStatusOfSilentHost(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local)
	since := begun.Add(7 * time.Second)
	suspect := job.Event{Time: begun.Add(10 * time.Second), Kind: job.KindSuspect, Attempt: 1, Host: "h2", Since: &since}
	const silent = "h2 is silent since 03:04:07"
	for name, c := range map[string]struct {
		events []job.Event
		want   string
	}{
		"heard":                         {nil, ""},
		"silent":                        {[]job.Event{suspect}, silent},
		"silent, told by an older one":  {[]job.Event{{Time: suspect.Time, Kind: job.KindSuspect, Attempt: 1, Host: "h2"}}, "h2 is silent since 03:04:10"},
		"heard again":                   {[]job.Event{suspect, {Kind: job.KindHeard, Attempt: 1, Host: "h2"}}, ""},
		"another is in contact again":   {[]job.Event{suspect, {Kind: job.KindHeard, Attempt: 1, Host: "h1"}}, silent},
		"lost":                          {[]job.Event{suspect, {Kind: job.KindExit, Attempt: 1, Exit: &job.Exit{Rank: 1, Host: "h2", Status: job.Lost}}}, ""},
		"its output is still to arrive": {[]job.Event{{Kind: job.KindExit, Attempt: 1, Exit: &job.Exit{Rank: 1, Host: "h2", Status: job.Exited}}, suspect}, silent},
		"the attempt is over":           {[]job.Event{suspect, {Kind: job.KindOutcome, Attempt: 1, Outcome: &job.Outcome{}}}, ""},
		"in an earlier attempt":         {[]job.Event{suspect, {Kind: job.KindPlaced, Attempt: 2, Placement: &job.Placement{Ranks: []job.Rank{{Rank: 0, Host: "h2"}}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			events := append([]job.Event{
				{Time: begun, Kind: job.KindCreated, Run: "r", Spec: &job.Spec{Command: []string{"true"}, Ranks: 2}},
				{Time: begun, Kind: job.KindPlaced, Attempt: 1, Placement: &job.Placement{Ranks: []job.Rank{{Rank: 0, Host: "h1"}, {Rank: 1, Host: "h2"}}}},
				{Time: begun, Kind: job.KindState, State: job.StateRunning},
				{Time: begun, Kind: job.KindStarted, Attempt: 1, Rank: 1, Host: "h2", PID: 12},
			}, c.events...)
			report := runreport.Fold(events)
			var out strings.Builder
			if err := (Status{Report: report, Now: ranksNow(report, events)}).Text(&out, begun, false); err != nil {
				t.Fatal(err)
			}
			var told []string
			for line := range strings.Lines(out.String()) {
				if at := strings.Index(line, "h2 is silent"); at >= 0 {
					told = append(told, strings.TrimSpace(line[at:])+" beside rank "+strings.Fields(line)[0])
				}
			}
			want := ""
			if c.want != "" {
				want = c.want + " beside rank 1"
			}
			if got := strings.Join(told, "\n"); got != want {
				t.Errorf("told %q, want %q, in\n%s", got, want, out.String())
			}
		})
	}
}
