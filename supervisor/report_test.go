package supervisor

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// twoAttempts returns a run that is killed and resumed. Its preflight takes 2 s, waiting 3 s, launching 1 s,
// running 10 s and the back-off 1 s. Then the same follows again.
func twoAttempts(t *testing.T) *world {
	g := dies(signalled(1, 9), job.Killed, 40).saving(40) // saved 10 s after the start of the clock
	w := newWorld(t, g, works())
	w.spec.CheckpointDir, w.spec.Name = "/ckpt", "digits"
	w.checker.findings = []job.Finding{{Check: "clock", Severity: job.SeverityWarning, Host: "h2", Text: "the clock is 3 s behind", Hint: "start an NTP client"}}
	diagnose := w.supervisor.Diagnose
	w.supervisor.Diagnose = func(e job.Evidence) job.Cause {
		c := diagnose(e)
		c.Signature, c.Text, c.Hint = "sigkill", "something outside killed the rank", "look for who kills processes on h2"
		c.Evidence = []job.Line{{Source: job.SourceStderr, File: "/logs/1/rank-0001.err", Line: 17, Rank: 1, Host: "h2", Text: "  \x1b[31mKilled\x1b[0m"}}
		return c
	}
	w.run(t)
	return w
}

func TestReportTimes(t *testing.T) {
	r := twoAttempts(t).report
	if want := (runreport.Seconds{Preflight: 2, Waiting: 6, Launching: 2, Running: 20, Backoff: 1}); r.Seconds != want {
		t.Errorf("seconds %+v, want %+v", r.Seconds, want)
	}
	// Two GPUs, 11 s each time; the checkpoint was written 6 s before the failure.
	if g := r.GPUSeconds; math.Abs(g.Used-44) > 1e-9 || math.Abs(g.Wasted-12) > 1e-9 {
		t.Errorf("GPU seconds %+v, want 44 used and 12 wasted", g)
	}
	a := r.Attempts[0]
	if a.Step != 40 || a.Total != 100 || a.FirstStep == nil || a.Saved == nil || a.Logs != "/logs/1" || a.Good() || !r.Last().Good() {
		t.Errorf("attempt %+v", a)
	}
	if c := r.Cause(); c != nil {
		t.Errorf("a run that succeeded died of %+v", c)
	}
}

// TestReportJSON: the report has all documented names in every state of the run, and no list is null.
func TestReportJSON(t *testing.T) {
	w := twoAttempts(t)
	for n := range len(w.events) + 1 {
		text, err := json.Marshal(runreport.Fold(w.events[:n]))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		has(t, got, "run", "state", "since", "exit_code", "trial", "preflight[]", "attempts[]", "seconds", "gpu_seconds", "command[]", "notes[]")
		has(t, got["seconds"], "preflight", "waiting", "launching", "running", "backoff")
		has(t, got["gpu_seconds"], "used", "wasted")
		for _, f := range got["preflight"].([]any) {
			has(t, f, "check", "severity", "host", "text", "hint")
		}
		for _, a := range got["attempts"].([]any) {
			has(t, a, "number", "started", "ended", "resume_from", "placement[]", "exits[]", "cause", "verdict")
			for _, p := range a.(map[string]any)["placement"].([]any) {
				has(t, p, "rank", "host", "devices[]", "cpus")
			}
			for _, x := range a.(map[string]any)["exits"].([]any) {
				has(t, x, "rank", "host", "status", "code", "signal", "time")
			}
			if v := a.(map[string]any)["verdict"]; v != nil {
				has(t, v, "action", "reason", "exclude")
			}
			if c := a.(map[string]any)["cause"]; c != nil {
				has(t, c, "category", "signature", "rank", "host", "confidence", "text", "hint", "retry", "evidence[]")
			}
		}
	}
	text, _ := json.Marshal(w.report)
	if !strings.Contains(string(text), `"started":"2000-01-01T00:00:00`) {
		t.Errorf("times are not RFC 3339: %s", text)
	}
}

// has checks that an object has the keys. A key that ends in [] must have a list.
func has(t *testing.T, object any, keys ...string) {
	t.Helper()
	m, _ := object.(map[string]any)
	for _, key := range keys {
		name, isList := strings.CutSuffix(key, "[]")
		v, ok := m[name]
		if _, listed := v.([]any); !ok || isList && !listed {
			t.Fatalf("%q is %v, among %v", key, v, slices.Sorted(maps.Keys(m)))
		}
	}
}

func TestFoldCutOff(t *testing.T) {
	w := twoAttempts(t)
	upTo := func(k job.Kind, attempt int) runreport.Report {
		i := slices.IndexFunc(w.events, func(e job.Event) bool { return e.Kind == k && e.Attempt == attempt })
		return runreport.Fold(w.events[:i+1])
	}
	r := upTo(job.KindAllStarted, 1)
	if r.State != job.StateLaunching || r.ExitCode != nil || r.Ended != nil || len(r.Attempts) != 1 || r.Attempts[0].Ended != nil {
		t.Errorf("all started: %+v", r)
	}
	if want := (runreport.Seconds{Preflight: 2, Waiting: 3, Launching: 1}); r.Seconds != want || r.GPUSeconds.Used != 2 || r.GPUSeconds.Wasted != 0 {
		t.Errorf("all started: %+v, %+v", r.Seconds, r.GPUSeconds)
	}
	if r := upTo(job.KindExit, 1); len(r.Attempts[0].Exits) != 1 || r.Attempts[0].Exits[0].Signal != 9 {
		t.Errorf("after an exit: %+v", r.Attempts[0])
	}
	if r := upTo(job.KindVerdict, 1); r.Attempts[0].Verdict.Action != job.Restart || r.Cause().Category != job.Killed || r.State != job.StateStopping {
		t.Errorf("after the verdict: %+v", r)
	}
	// A journal without its beginning still gives a report.
	if r := runreport.Fold(w.events[len(w.events)-4:]); r.State != job.StateSucceeded || len(r.Attempts) != 1 || r.Attempts[0].Number != 2 {
		t.Errorf("the tail: %+v", r)
	}
	if r := runreport.Fold(nil); r.State != "" || r.Last() != nil || r.Cause() != nil {
		t.Errorf("nothing: %+v", r)
	}
}

// TestReportIsASnapshot: later events do not change a report.
func TestReportIsASnapshot(t *testing.T) {
	w := twoAttempts(t)
	var f runreport.Folder
	for i, e := range w.events {
		r := f.Report()
		before, _ := json.Marshal(r)
		f.Add(e)
		f.Report()
		if after, _ := json.Marshal(r); string(before) != string(after) {
			t.Fatalf("event %d (%s) changed an earlier report", i, e.Kind)
		}
	}
	if !reflect.DeepEqual(f.Report(), w.report) {
		t.Error("folding one at a time differs")
	}
}

// FuzzFold: folding and summarizing work with any journal.
func FuzzFold(f *testing.F) {
	for _, seed := range []string{
		`[]`,
		`[{"kind":"started","attempt":1,"rank":3},{"kind":"ended","state":"failed"},{"kind":"started","attempt":1}]`,
		`[{"kind":"placed","attempt":2},{"kind":"outcome","attempt":1},{"kind":"verdict","attempt":2}]`,
		`[{"kind":"exit","attempt":1,"exit":{"status":"x"}},{"kind":"cause","attempt":1,"cause":{"evidence":[{"text":"\u001b[2J"}]}}]`,
		`[{"kind":"created","spec":{"command":["a"]}},{"kind":"finding","finding":{"severity":"error"}},{"kind":"progress","attempt":1,"progress":{"step":-7}}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var events []job.Event
		if json.Unmarshal(data, &events) != nil {
			return
		}
		r := runreport.Fold(events)
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if s := r.Seconds; min(s.Preflight, s.Waiting, s.Launching, s.Running, s.Backoff, r.GPUSeconds.Used, r.GPUSeconds.Wasted) < 0 {
			t.Fatalf("%+v %+v", s, r.GPUSeconds)
		}
		for _, line := range runreport.Summary(r) {
			if text.Printable(line) != line {
				t.Fatalf("%q", line)
			}
		}
	})
}

// TestLastNoteOfAWait: the report keeps only the last note about a wait.
func TestLastNoteOfAWait(t *testing.T) {
	var f runreport.Folder
	note := func(text string, s job.State) { f.Add(job.Event{Kind: job.KindNote, State: s, Text: text}) }
	state := func(s job.State) { f.Add(job.Event{Kind: job.KindState, State: s}) }
	note("before", "")
	state(job.StatePreflight)
	note("trial waits 1", job.StateWaiting)
	note("between", "")
	note("trial waits 2", job.StateWaiting)
	state(job.StateWaiting)
	note("waits 1", job.StateWaiting)
	note("waits 2", job.StateWaiting)
	note("waits 3", job.StateWaiting)
	state(job.StateLaunching)
	note("after", "")
	state(job.StateWaiting)
	note("waits again", job.StateWaiting)
	if want, got := []string{"before", "between", "trial waits 2", "waits 3", "after", "waits again"}, f.Report().Notes; !slices.Equal(got, want) {
		t.Errorf("the notes are %q, want %q", got, want)
	}
}

// TestActivity: the report has what the ranks were doing when gangrun decided to end the gang, and the
// diagnosis gets it, too. If agents report it again to a later controller, it counts as known.
func TestActivity(t *testing.T) {
	w := newWorld(t, gang{life: time.Hour})
	w.spec.Timeout = job.Duration(time.Minute)
	var told []job.Activity
	diagnose := w.supervisor.Diagnose
	w.supervisor.Diagnose = func(e job.Evidence) job.Cause {
		told = e.Activity
		return diagnose(e)
	}
	idle := job.Duration(time.Second)
	first := []job.Activity{{Rank: 1, Host: "h2", State: job.ProcessStopped, Quiet: idle, Idle: &idle}}
	second := []job.Activity{{Rank: 0, Host: "h1", State: job.ProcessRunning}}
	launch := w.supervisor.Launcher
	w.supervisor.Launcher = launcherFunc(func(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
		outcome, err := launch.Run(ctx, a, emit)
		for _, what := range [][]job.Activity{first, second} {
			emit(job.Event{Kind: job.KindActivity, Host: what[0].Host, Activity: what})
		}
		return outcome, err
	})
	w.run(t)
	want := append(slices.Clone(first), second...)
	if got := w.report.Last().Activity; !reflect.DeepEqual(got, want) || !reflect.DeepEqual(told, want) {
		t.Errorf("reported are %+v, diagnosed %+v, want %+v", got, told, want)
	}
	again := adopted{told: map[string]bool{}}
	event := job.Event{Kind: job.KindActivity, Attempt: 1, Host: "h2", Activity: first}
	if again.add(event); !again.knows(event) {
		t.Error("what an agent tells again is not known")
	}
	if event.Host = "h1"; again.knows(event) {
		t.Error("what another agent tells is known")
	}
}
