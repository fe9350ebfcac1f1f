package runreport

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestTrialOfReport: the status line, the summary and the JSON show at each moment what a preflight is doing.
func TestTrialOfReport(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	on := func(hosts ...string) *job.Placement {
		p := &job.Placement{}
		for i, h := range hosts {
			p.Hosts = append(p.Hosts, job.Host{Name: h})
			p.Ranks = append(p.Ranks, job.Rank{Rank: i, Host: h})
		}
		return p
	}
	code := 78
	steps := []struct {
		event   job.Event
		status  string
		summary []string // the lines of the summary that begin with these labels
		trial   string
	}{
		{job.Event{Kind: job.KindCreated, Run: "r1", Spec: &job.Spec{Ranks: 4}}, ", 0.0s", nil, `null`},
		{job.Event{Kind: job.KindState, State: job.StatePreflight}, "preflight, static checks, 1.0s",
			[]string{"preflight  static checks, since 12:00:01.0"}, `null`},
		{job.Event{Kind: job.KindTrial, Text: "one rank on h1", Placement: on("h1"), LogDir: "/logs/trial"}, "preflight, trial of 1 rank on h1, 2.0s",
			[]string{"trial   1 rank on h1, started 12:00:02.0, 0 of 1 rank up", "logs  /logs/trial", "        one rank on h1"},
			`{"text":"one rank on h1","steps":[{"ranks":1,"hosts":["h1"],"started":"2026-01-01T12:00:02Z","ended":null,"alive":0,"logs":"/logs/trial"}]}`},
		{job.Event{Kind: job.KindStarted, Rank: 0, Host: "h1", PID: 7}, "preflight, trial of 1 rank on h1, 3.0s",
			[]string{"trial   1 rank on h1, started 12:00:02.0, 1 of 1 rank up"}, `"ended":null,"alive":1`},
		{job.Event{Kind: job.KindTrial, Text: "it is busy"}, "preflight, trial of 1 rank on h1, 4.0s", // the step has not ended
			[]string{"trial   1 rank on h1, started 12:00:02.0, 1 of 1 rank up", "        it is busy"}, `"ended":null,"alive":1`},
		{job.Event{Kind: job.KindExit, Exit: &job.Exit{Rank: 0, Host: "h1"}}, "preflight, trial of 1 rank on h1, 5.0s",
			[]string{"trial   1 rank on h1, started 12:00:02.0, 0 of 1 rank up"}, `"ended":null,"alive":0`},
		{job.Event{Kind: job.KindTrial, Text: "passed"}, "preflight, trial of 1 rank on h1, 6.0s",
			[]string{"trial   1 rank on h1, started 12:00:02.0, ended 12:00:06.0 after 4.0s", "        passed"}, `"ended":"2026-01-01T12:00:06Z","alive":0`},
		{job.Event{Kind: job.KindTrial, Text: "2 ranks", Placement: on("h1", "h2"), LogDir: "/logs/trial/trial2"}, "preflight, trial of 2 ranks on h1, h2, 7.0s",
			[]string{"trial   2 ranks on h1, h2, started 12:00:07.0, 0 of 2 ranks up", "logs  /logs/trial/trial2"}, `},{"ranks":2,"hosts":["h1","h2"]`},
		{job.Event{Kind: job.KindStarted, Rank: 1, Host: "h2", PID: 8}, "preflight, trial of 2 ranks on h1, h2, 8.0s",
			[]string{"trial   2 ranks on h1, h2, started 12:00:07.0, 1 of 2 ranks up"}, `"ended":null,"alive":1`},
		{job.Event{Kind: job.KindEnded, State: job.StatePreflightFailed, Text: "it failed", ExitCode: &code}, "preflight-failed, 9.0s",
			[]string{"trial      2 ranks on h1, h2, started 12:00:07.0, ended 12:00:09.0 after 2.0s"}, `"ended":"2026-01-01T12:00:09Z","alive":0`},
	}
	var f Folder
	var events []job.Event
	for i, step := range steps {
		step.event.Time = noon.Add(time.Duration(i) * time.Second)
		f.Add(step.event)
		events = append(events, step.event)
		if have := f.Status(step.event.Time).String(); have != step.status {
			t.Errorf("event %d: status %q, want %q", i, have, step.status)
		}
		r := f.Report()
		have := strings.Join(Summary(r), "\n")
		for _, want := range step.summary {
			if !strings.Contains(squeeze(have), squeeze(want)) {
				t.Errorf("event %d: no line %q in\n%s", i, want, have)
			}
		}
		text, err := json.Marshal(r.Trial)
		if err != nil || !strings.Contains(string(text), step.trial) {
			t.Errorf("event %d: trial %s, %v, want %s", i, text, err, step.trial)
		}
	}

	// A later controller repeats the preflight.
	r := Fold(append(events[:8:8], job.Event{Time: noon.Add(time.Minute), Kind: job.KindAttached, Controller: &job.Controller{}}))
	if r.Trial != nil {
		t.Errorf("after a takeover: %+v", r.Trial)
	}
	// When the gang has started, the summary shows the attempts of the gang.
	r = Fold(append(events[:7:7], job.Event{Time: noon.Add(time.Minute), Kind: job.KindState, State: job.StateWaiting},
		job.Event{Time: noon.Add(time.Minute), Kind: job.KindPlaced, Attempt: 1, Placement: on("h1")}))
	if text := strings.Join(Summary(r), "\n"); strings.Contains(text, "trial") || r.Trial == nil || r.Trial.Steps[0].Ended == nil {
		t.Errorf("after the preflight: trial %+v, summary\n%s", r.Trial, text)
	}
	if since := r.Since; since == nil || !since.Equal(noon.Add(time.Minute)) {
		t.Errorf("it waits since %v", since)
	}
}

// squeeze replaces several blanks by one.
func squeeze(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }), " ")
}

// TestTrialStepString: of a trial on many hosts, only the first hosts are named.
func TestTrialStepString(t *testing.T) {
	s := TrialStep{Ranks: 64}
	s.Hosts = append(s.Hosts, strings.Fields("a b c d e f g h i j")...)
	if have, want := s.String(), "64 ranks on a, b, c, d, e, f, g, h, 2 more"; have != want {
		t.Errorf("%q, want %q", have, want)
	}
}
