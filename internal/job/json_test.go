package job_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// thereAndBack checks that v is the same after it was encoded as JSON and decoded.
func thereAndBack[T any](t *testing.T, v T) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	var back T
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatalf("%T from %s: %v", v, data, err)
	}
	if !reflect.DeepEqual(back, v) {
		t.Errorf("%T was not what it had been:\n got %+v\nwant %+v\njson %s", v, back, v, data)
	}
}

func TestEveryFieldSurvivesJSON(t *testing.T) {
	type inner struct {
		Attempt     job.Attempt
		Exit        job.Exit
		Unreaped    job.Unreaped
		Cause       job.Cause
		Checkpoint  job.Checkpoint
		Controller  job.Controller
		Progress    job.Progress
		Line        job.Line
		Evidence    job.Evidence
		Activity    job.Activity
		Survey      job.Survey
		Facts       job.Facts
		Finding     job.Finding
		Host        job.Host
		Device      job.Device
		Inventory   job.Inventory
		Rank        job.Rank
		Placement   job.Placement
		Explanation job.Explanation
		Excluded    job.Excluded
		Spec        job.Spec
		Trial       job.Trial
		Verdict     job.Verdict
		Outcome     job.Outcome
		Event       job.Event
		GPU         job.GPU
	}
	thereAndBack(t, filled[inner]())
}

// TestZeroValuesSurviveJSON checks that zero values are the same after they were encoded and decoded. Some lists are
// set here because they are never null in JSON.
func TestZeroValuesSurviveJSON(t *testing.T) {
	thereAndBack(t, job.Attempt{})
	thereAndBack(t, job.Exit{})
	thereAndBack(t, job.Event{})
	thereAndBack(t, job.Spec{})
	thereAndBack(t, job.Default())
	thereAndBack(t, job.Verdict{})
	thereAndBack(t, job.Facts{})
	thereAndBack(t, job.Finding{})
	thereAndBack(t, job.Line{})
	thereAndBack(t, job.Outcome{Exits: []job.Exit{}})
	thereAndBack(t, job.Cause{Evidence: []job.Line{}})
	thereAndBack(t, job.Cause{Rank: -1, Evidence: []job.Line{}})
}

// events returns one event of each kind, with the fields set that the comment of the kind names.
func events() []job.Event {
	code, loss := 139, 0.25
	at := time.Date(2026, 11, 21, 9, 59, 12, 345_678_901, time.UTC)
	spec, outcome := filled[job.Spec](), filled[job.Outcome]()
	placement, explanation := filled[job.Placement](), filled[job.Explanation]()
	finding, cause, verdict := filled[job.Finding](), filled[job.Cause](), filled[job.Verdict]()
	pulses := filled[job.Pulses]()
	health, hang, straggler := filled[job.Health](), filled[job.HangReport](), filled[job.StragglerReport]()
	curve := filled[job.CurveVerdict]()
	order := filled[job.Order]()
	save, interval := filled[job.SaveReport](), filled[job.SaveInterval]()
	exit, checkpoint, controller := filled[job.Exit](), filled[job.Checkpoint](), filled[job.Controller]()
	return []job.Event{
		{Time: at, Kind: job.KindCreated, Run: "calm-otter", Controller: &controller, Spec: &spec},
		{Time: at, Kind: job.KindState, State: job.StateWaiting, Text: "4 GPUs are busy"},
		{Time: at, Kind: job.KindFinding, Finding: &finding},
		{Time: at, Kind: job.KindFingerprint, Text: "0123456789abcdef"},
		{Time: at, Kind: job.KindTrial, Text: "2 steps in 3 s"},
		{Time: at, Kind: job.KindPlaced, Attempt: 1, Placement: &placement, Explanation: &explanation},
		{Time: at, Kind: job.KindAttempt, Attempt: 2, ResumeFrom: "/ckpt/step-20.pt", LogDir: "/runs/calm-otter/attempts/2"},
		{Time: at, Kind: job.KindHost, Host: "h2", Agent: &job.Agent{Token: "0123", Program: "/p", Boot: "b"}},
		{Time: at, Kind: job.KindStarted, Attempt: 1, Rank: 3, Host: "h2", PID: 4322},
		{Time: at, Kind: job.KindStdin, Rank: 1, Host: "h2"},
		{Time: at, Kind: job.KindProgress, Attempt: 1, Rank: 3, Host: "h2", Progress: &job.Progress{Step: 21, Total: 300, ByEpoch: true, Epoch: -1, Loss: &loss}},
		{Time: at, Kind: job.KindProgress, Attempt: 1, Rank: 3, Host: "h2", Progress: &job.Progress{Step: 22, Epoch: 1, LossIs: job.LossNegInfinite}},
		{Time: at, Kind: job.KindProgress, Attempt: 1, Rank: 3, Host: "h2", Progress: &job.Progress{Step: 3, Total: 10, Epoch: 2, Count: 23, Restarts: true}},
		{Time: at, Kind: job.KindUnread, Attempt: 1, Host: "h2"},
		{Time: at, Kind: job.KindActivity, Attempt: 1, Host: "h2", Activity: []job.Activity{filled[job.Activity]()}},
		{Time: at, Kind: job.KindExit, Attempt: 1, Exit: &exit},
		{Time: at, Kind: job.KindStop, Attempt: 1, Stop: job.StopFailure, Text: "rank 2 on h1 exited with code 1"},
		{Time: at, Kind: job.KindStop, Attempt: 1, Stop: job.StopOrder, Order: &order, Text: "cancelled by SIGINT"},
		{Time: at, Kind: job.KindOutcome, Attempt: 1, Outcome: &outcome},
		{Time: at, Kind: job.KindCheckpoint, Attempt: 1, Checkpoint: &checkpoint},
		{Time: at, Kind: job.KindCause, Attempt: 1, Cause: &cause},
		{Time: at, Kind: job.KindVerdict, Attempt: 1, Verdict: &verdict},
		{Time: at, Kind: job.KindWireup, Attempt: 1, Text: "2 of 3 ranks", Wireup: &job.Wireup{MPI: job.MPIMPICH, In: []int{0, 1}, Waiting: []int{0}, Silent: []int{2}}},
		{Time: at, Kind: job.KindNote, Text: "the port was taken"},
		{Time: at, Kind: job.KindEnded, State: job.StateFailed, ExitCode: &code, ExitWhy: "the code of rank 3 on h2", Text: "it failed", Hint: "look at the log"},
		{Time: at, Kind: job.KindAllStarted, Attempt: 1},
		{Time: at, Kind: job.KindSuspect, Attempt: 1, Host: "h2", Text: "h2 is silent"},
		{Time: at, Kind: job.KindHeard, Attempt: 1, Host: "h2", Text: "h2 is in contact again"},
		{Time: at, Kind: job.KindAttached, Run: "calm-otter", Controller: &job.Controller{Host: "h0", BootID: "b", PID: 12, Start: 3}},
		{Time: at, Kind: job.KindSignal, Attempt: 1, Host: "h2", Text: "SIGUSR1 went to the ranks on h2"},
		{Time: at, Kind: job.KindGPU, Attempt: 1, Host: "h2", GPU: &job.GPU{Sign: job.GPUXID, UUID: "GPU-a", PCI: "0000:3b:00.0", XID: 79, Ranks: []int{0, 3}, Count: 2}, Text: "XID 79", Hint: "reset it"},
		{Time: at, Kind: job.KindHealth, Attempt: 1, Host: "h2", Health: &health, Text: "its memory runs out", Hint: "use less"},
		{Time: at, Kind: job.KindHang, Attempt: 1, Hang: &hang, Text: "no step for 10m"},
		{Time: at, Kind: job.KindStacks, Attempt: 1, Stacks: []job.RankStack{filled[job.RankStack]()}},
		{Time: at, Kind: job.KindPulse, Attempt: 1, Host: "h2", Pulses: &pulses},
		{Time: at, Kind: job.KindSave, Attempt: 1, Host: "h2", Save: &save, Text: "ckpt-40.pt is broken", Hint: "look at it"},
		{Time: at, Kind: job.KindInterval, Attempt: 1, Interval: &interval, Text: "save more often"},
		{Time: at, Kind: job.KindStraggler, Attempt: 1, Host: "h2", Straggler: &straggler, Text: "rank 3 is slow"},
		{Time: at, Kind: job.KindCurve, Attempt: 1, Curve: &curve, Text: "the loss is NaN"},
	}
}

func TestEventOfEachKindSurvivesJSON(t *testing.T) {
	seen := map[job.Kind]bool{}
	for _, e := range events() {
		t.Run(string(e.Kind), func(t *testing.T) { thereAndBack(t, e) })
		seen[e.Kind] = true
	}
	for _, kind := range constants(t)["Kind"] {
		if !seen[job.Kind(kind)] {
			t.Errorf("no event of kind %q is tested", kind)
		}
	}
}

// TestEventTellsExitCodeZero checks that JSON distinguishes an exit code of 0 from no exit code.
func TestEventTellsExitCodeZero(t *testing.T) {
	zero := 0
	thereAndBack(t, job.Event{Kind: job.KindEnded, State: job.StateSucceeded, ExitCode: &zero})
}

func TestCauseJSON(t *testing.T) {
	line := job.Line{Source: job.SourceStderr, Host: "h1", Rank: 0, File: "/l/rank-0000.err", Line: 7, Text: "ZeroDivisionError: division by zero"}
	for _, c := range []struct {
		name  string
		cause job.Cause
		want  string
	}{
		{"none found", job.Cause{Rank: -1},
			`{"category":null,"signature":"","host":"","confidence":0,"text":"","hint":"","retry":"","evidence":[],"rank":null}`},
		{"of rank 0", job.Cause{Category: job.SemanticError, Signature: "python-zero-division", Rank: 0, Host: "h1", Confidence: 0.9,
			Text: "it divided by zero", Hint: "look at line 7", Retry: job.RetryNever, Evidence: []job.Line{line}},
			`{"category":"semantic-error","signature":"python-zero-division","host":"h1","confidence":0.9,"text":"it divided by zero","hint":"look at line 7","retry":"never",` +
				`"evidence":[{"source":"stderr","host":"h1","rank":0,"file":"/l/rank-0000.err","line":7,"text":"ZeroDivisionError: division by zero"}],` +
				`"rank":0}`},
		{"of no rank", job.Cause{Category: job.PortInUse, Rank: -1, Host: "h2", Confidence: 1, Retry: job.RetryAgain, Artefact: "29500"},
			`{"category":"port-in-use","signature":"","host":"h2","confidence":1,"text":"","hint":"","retry":"again","artefact":"29500","evidence":[],"rank":null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := json.Marshal(c.cause)
			if err != nil {
				t.Fatal(err)
			}
			if string(data) != c.want {
				t.Errorf("got  %s\nwant %s", data, c.want)
			}
			// Values that were in the variable before must not remain.
			back := filled[job.Cause]()
			back.Artefact, back.Evidence, back.After, back.Looks, back.Also, back.Cascades = "", nil, nil, "", nil, 0
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatal(err)
			}
			want := c.cause
			if want.Evidence == nil {
				want.Evidence = []job.Line{}
			}
			if !reflect.DeepEqual(back, want) {
				t.Errorf("read back: got %+v, want %+v", back, want)
			}
		})
	}
}

func TestCauseRefusesOtherJSON(t *testing.T) {
	for _, text := range []string{`[]`, `"x"`, `{"rank":"two"}`, `{"category":3}`, `{"evidence":{}}`, `{`} {
		var c job.Cause
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s was read as %+v, want an error", text, c)
		}
	}
}

// TestEmptyListsAreNotNull checks that an empty list is [] and not null where a report promises a list.
func TestEmptyListsAreNotNull(t *testing.T) {
	data, err := json.Marshal(job.Outcome{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"exits":[]}`; string(data) != want {
		t.Errorf("an empty outcome is %s, want %s", data, want)
	}
}

// TestJSONLeavesOut checks that JSON does not have the data that must not get into files that others can read.
func TestJSONLeavesOut(t *testing.T) {
	a := filled[job.Attempt]()
	a.Env = map[string]string{"TOKEN": "hush"}
	o := filled[job.Outcome]()
	o.Lines = []job.Line{{Text: "hush"}}
	for _, v := range []any{a, o, &a, &o} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "hush") {
			t.Errorf("%T tells what it must not: %s", v, data)
		}
	}
}
