package htmlreport

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/vitals"
)

var start = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// after returns a time some seconds after the start of the run.
func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// write returns the page of a run with these events.
func write(t testing.TB, x Extra, events ...job.Event) string {
	t.Helper()
	var r Recorder
	for _, e := range events {
		r.Add(e)
	}
	if x.Now.IsZero() {
		x.Now = after(1000)
	}
	var b bytes.Buffer
	if err := r.Write(&b, x); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String())
	return b.String()
}

var (
	tags     = regexp.MustCompile(`<[a-z!][^>]*>`)
	external = regexp.MustCompile(`(?i)(?:src|href|action|data|poster|srcset)\s*=\s*["']?\s*(?:[a-z]+:)?//|file:|javascript:|<(?:script|iframe|object|embed|form|base)|\son[a-z]+\s*=`)
)

// checkPage checks what must be true of every page.
func checkPage(t testing.TB, page string) {
	t.Helper()
	for _, tag := range tags.FindAllString(page, -1) {
		if found := external.FindString(tag); found != "" {
			t.Errorf("the page is not self-contained, or runs a script: it has %q", tag)
		}
	}
	if strings.Contains(page, "http:") || strings.Contains(page, "https:") {
		t.Error("the page has a URL")
	}
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	if len(style) < 1000 || strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("the style of the page is missing, or not self-contained")
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template has refused a value")
	}
	wellFormed(t, page)
	for _, r := range page {
		if visible(r) != r {
			t.Fatalf("the page has the character %U", r)
		}
	}
}

// wellFormed reads the body of a page as XML. The only element without an end tag may be br.
func wellFormed(t testing.TB, page string) {
	t.Helper()
	_, body, _ := strings.Cut(page, "</head>")
	body, _, _ = strings.Cut(body, "</html>")
	body = strings.NewReplacer("<br>", "<br/>", "<details open>", `<details open="">`).Replace(body)
	d := xml.NewDecoder(strings.NewReader(body))
	titles, pictures, depth := 0, 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, column := d.InputPos()
			t.Fatalf("the page is not well-formed: %v at %d:%d: %q", err, line, column, strings.Split(body, "\n")[line-1])
		}
		if s, ok := token.(xml.StartElement); ok {
			depth++
			if s.Name.Local == "svg" {
				for _, a := range s.Attr {
					if a.Name.Local == "role" {
						pictures++
					}
				}
			}
			if s.Name.Local == "title" {
				titles++
			}
		}
	}
	if titles < pictures {
		t.Errorf("%d pictures have only %d titles", pictures, titles)
	}
}

// spec is the first event of a run.
func spec(ranks int) job.Event {
	return job.Event{Time: start, Kind: job.KindCreated, Run: "20261126-090000-x-1234", Spec: &job.Spec{Name: "x", Ranks: ranks, Command: []string{"python3", "train.py"}}}
}

func state(seconds float64, s job.State) job.Event {
	return job.Event{Time: after(seconds), Kind: job.KindState, State: s}
}

// gang returns a placement of ranks on hosts with eight GPUs each.
func gang(ranks int) job.Placement {
	var p job.Placement
	for rank := range ranks {
		host := fmt.Sprintf("h%d", rank/8)
		if rank%8 == 0 {
			h := job.Host{Name: host}
			for g := range 8 {
				h.Devices = append(h.Devices, job.Device{UUID: fmt.Sprintf("GPU-%s-%d", host, g), Index: g, Name: "NVIDIA H100"})
				var row []job.Link
				for other := range 8 {
					l := job.Link("NV18")
					if other == g {
						l = ""
					}
					row = append(row, l)
				}
				h.Links = append(h.Links, row)
			}
			p.Hosts = append(p.Hosts, h)
		}
		p.Ranks = append(p.Ranks, job.Rank{Rank: rank, Host: host, Devices: []string{fmt.Sprintf("GPU-%s-%d", host, rank%8)}, LocalRank: rank % 8, Node: rank / 8})
	}
	return p
}

// attemptEvents returns the first events of an attempt.
func attemptEvents(number int, seconds float64, p job.Placement) []job.Event {
	return []job.Event{
		state(seconds, job.StateLaunching),
		{Time: after(seconds), Kind: job.KindPlaced, Attempt: number, Placement: &p, Explanation: &job.Explanation{Why: []string{"it is the only place"}}},
		{Time: after(seconds), Kind: job.KindAttempt, Attempt: number, LogDir: "/runs/x/attempts/" + strconv.Itoa(number)},
		state(seconds+1, job.StateRunning),
	}
}

func progress(number, rank int, seconds float64, step int64, loss float64) job.Event {
	p := &job.Progress{Step: step, Epoch: -1}
	p.SetLoss(loss)
	return job.Event{Time: after(seconds), Kind: job.KindProgress, Attempt: number, Rank: rank, Progress: p}
}

// failedRun returns the events of a run that has failed once and then succeeded. It has everything that a page
// can show.
func failedRun() []job.Event {
	zero := 0
	events := append([]job.Event{spec(8), {Time: start, Kind: job.KindFinding, Finding: &job.Finding{Check: "program", Severity: job.SeverityWarning, Host: "h0", Text: "it is old", Hint: "renew it"}}, state(0, job.StatePreflight), state(2, job.StateWaiting)},
		attemptEvents(1, 10, gang(8))...)
	for i := range 50 {
		events = append(events, progress(1, 0, 11+float64(i), int64(i), 5/float64(i+1)), progress(1, 3, 11+float64(i), int64(i), 6/float64(i+1)))
	}
	events = append(events,
		job.Event{Time: after(30), Kind: job.KindHealth, Attempt: 1, Host: "h0", Health: &job.Health{Sign: job.HealthMemory, Severity: job.SeverityWarning}, Text: "memory runs out"},
		job.Event{Time: after(31), Kind: job.KindStraggler, Attempt: 1, Host: "h0", Text: "rank 3 is slow", Straggler: &job.StragglerReport{Rank: 3, Host: "h0", Speed: 0.5, Text: "rank 3 is slow"}},
		job.Event{Time: after(59), Kind: job.KindHang, Attempt: 1, Text: "no step for 10 s", Hang: &job.HangReport{Text: "no step for 10 s", Ranks: []int{3}, Why: "it alone is in another place", Groups: []job.StackGroup{
			{Ranks: []int{0, 1, 2, 4, 5, 6, 7}, Where: "all_reduce (train.py:40 step)", State: job.ProcessSleeping, Frames: []job.Frame{{Function: "all_reduce", File: "train.py", Line: 40}}},
			{Ranks: []int{3}, Where: "read", State: job.ProcessDisk},
		}}},
		job.Event{Time: after(60), Kind: job.KindStop, Attempt: 1, Text: "the gang has hung"},
		job.Event{Time: after(61), Kind: job.KindOutcome, Attempt: 1, Outcome: &job.Outcome{Exits: []job.Exit{{Rank: 3, Host: "h0", Status: job.Signalled, Signal: 9}}}},
		job.Event{Time: after(61), Kind: job.KindCheckpoint, Attempt: 1, Checkpoint: &job.Checkpoint{Path: "/ck/step-40.pt", Step: 40, Time: after(50)}},
		job.Event{Time: after(61), Kind: job.KindCause, Attempt: 1, Cause: &job.Cause{Category: job.Hang, Rank: 3, Host: "h0", Text: "it hung", Hint: "look at the disk", Confidence: 0.8,
			Evidence: []job.Line{{Source: job.SourceStderr, File: "/l/rank-0003.err", Line: 7, Text: "a line before"}, {Source: job.SourceStderr, File: "/l/rank-0003.err", Line: 8, Text: "the line that shows it"}}}},
		job.Event{Time: after(61), Kind: job.KindVerdict, Attempt: 1, Verdict: &job.Verdict{Action: job.Restart, Reason: "it may pass"}})
	events = append(events, attemptEvents(2, 70, gang(8))...)
	slices.SortStableFunc(events, func(a, b job.Event) int { return a.Time.Compare(b.Time) })
	for i := range 50 {
		events = append(events, progress(2, 0, 71+float64(i), int64(40+i), 5/float64(i+40)))
	}
	var exits []job.Exit
	for rank := range 8 {
		exits = append(exits, job.Exit{Rank: rank, Host: "h0", Status: job.Exited})
	}
	return append(events,
		job.Event{Time: after(122), Kind: job.KindOutcome, Attempt: 2, Outcome: &job.Outcome{Exits: exits}},
		job.Event{Time: after(122), Kind: job.KindVerdict, Attempt: 2, Verdict: &job.Verdict{Action: job.Succeed, Reason: "every rank ended well"}},
		job.Event{Time: after(122), Kind: job.KindNote, Text: "a note"},
		job.Event{Time: after(123), Kind: job.KindEnded, State: job.StateSucceeded, Text: "every rank ended well", ExitCode: &zero, ExitWhy: "success"})
}

func TestPage(t *testing.T) {
	cpu := 87.0
	page := write(t, Extra{
		Command: "python3 train.py", Notes: []string{"a note on the page"},
		Vitals: &vitals.Vitals{Attempt: 2, Ranks: []vitals.Rank{{Rank: 5, Rate: 60, Use: vitals.Use{CPU: &cpu, RSS: 3 << 30}, Odd: []vitals.Oddity{vitals.OddMemory}}}},
		Curves: []Curves{{Attempt: 2, Loss: Curve{Name: "lm loss", Points: []Point{{40, 0.2}, {60, 0.15}, {90, 0.1}}}, Throughput: Curve{Name: "tokens/s", Higher: true, Points: []Point{{40, 1000}, {90, 1100}}},
			Metric: Curve{Name: "val_accuracy", Higher: true, Points: []Point{{50, 0.8}, {90, 0.9}}}}},
	}, append(failedRun(),
		job.Event{Time: after(121), Kind: job.KindCurve, Attempt: 2, Text: "plateau: it no longer improves", Curve: &job.CurveVerdict{Kind: "plateau", Step: 80, Text: "it no longer improves", Confidence: 0.9}},
		job.Event{Time: after(121), Kind: job.KindSave, Attempt: 2, Save: &job.SaveReport{State: job.SaveComplete, Checkpoint: job.Checkpoint{Path: "/ck/step-85.pt", Step: 85, Bytes: 1 << 30}, Write: job.Duration(4 * time.Second)}},
	)...)
	for _, want := range []string{
		"20261126-090000-x-1234", "succeeded", "0 (success)", "python3 train.py", "2 min 3 s", "8 ranks on 1 host, 8 GPUs", // header
		"preflight, 2.0 s", "waiting, 8.0 s", "running, 50.0 s", "back-off, 9.0 s", "attempt 1: failed, 51.0 s", "attempt 2: succeeded", // timeline
		"attempt 1, step 40: checkpoint /ck/step-40.pt", "h0: memory runs out", "attempt 1, step 20: rank 3 is slow", "no step for 10 s", "verdict: restart: it may pass", // marks
		"lm loss; last 0.1 at step 90", "val_accuracy; last 0.9", "tokens/s; last 1100", "best 0.9", "attempt 2, step 80: plateau: it no longer improves", "1 good, newest step 85", "plateau, confidence 90 %: it no longer improves", "step 85: the checkpoint step-85.pt is complete: 1.0 GiB, written in 4.0 s", "attempt 2, step 60: 0.15", // curves
		"Cause: hang", "rank 3 on h0, confidence 80 %", "look at the disk", `<div class="decisive"><span>rank-0003.err:8</span>  the line that shows it</div>`, // cause
		"ranks 0-2,4-7 in all_reduce (train.py:40 step)", "all_reduce train.py:40", "rank 3: it alone is in another place", // stacks
		"<td class=\"n\">5</td><td>h0</td><td>GPU5</td><td class=\"end good\">code 0</td>", "87 %", "3.0 GiB", "rss", // ranks
		"GPU5 NVIDIA H100 GPU-h0-5: rank 5", "GPU1 and GPU0: NV18, 18 NVLinks", // placement
		"it is old", "renew it", "a note", "a note on the page", "Made by gangrun at 2026-11-26 09:16:40 UTC",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestWithoutCurves: if the logs of a run are gone, the page has the losses of the journal.
func TestWithoutCurves(t *testing.T) {
	page := write(t, Extra{}, failedRun()...)
	for _, want := range []string{"loss; last 0.05618 at step 89", "steps per second", "thick: attempt 2; thin: earlier ones"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, ">Validation<") {
		t.Error("the page has a picture of a metric that nobody has reported")
	}
}

// TestEarly: there is a page of a run at every moment, even before the run has begun.
func TestEarly(t *testing.T) {
	events := failedRun()
	for n := 0; n < len(events); n++ {
		if n > 10 && events[n].Kind == job.KindProgress {
			continue // most events are reports of progress
		}
		page := write(t, Extra{Now: events[n].Time.Add(time.Second)}, events[:n]...)
		if n > 0 && !strings.Contains(page, "20261126-090000-x-1234") {
			t.Fatalf("after %d events, the page lacks its run", n)
		}
	}
	if page := write(t, Extra{State: job.StateLost}, events[:60]...); !strings.Contains(page, "gangrun attach 20261126-090000-x-1234") {
		t.Error("the page of a run without a controller does not say how to continue it")
	}
}

// TestPreflightFailed: the page of a run without a gang has the evidence of its preflight, and each hint once.
func TestPreflightFailed(t *testing.T) {
	code := 78
	cause := &job.Cause{Category: job.ImportError, Text: "no module", Hint: "install it", Evidence: []job.Line{{File: "/l/rank-0000.err", Line: 3, Text: "ModuleNotFoundError: nosuch"}}}
	page := write(t, Extra{}, spec(2), state(0, job.StatePreflight),
		job.Event{Time: after(0.1), Kind: job.KindFinding, Finding: &job.Finding{Check: "trial", Severity: job.SeverityError, Text: "the trial failed", Hint: "install it; --trial off omits the trial", Cause: cause}},
		job.Event{Time: after(0.1), Kind: job.KindEnded, State: job.StatePreflightFailed, Text: "the trial failed", Hint: "install it; --trial off omits the trial", ExitCode: &code, ExitWhy: "a fault"})
	for want, n := range map[string]int{"rank-0000.err:3</span>  ModuleNotFoundError: nosuch": 1, "<p>install it": 1, "<p>install it; --trial off": 1, "preflight, 0.1 s": 1, "0.08 s": 1, "<h2>Attempts": 0, "<h2>Placement": 0} {
		if have := strings.Count(page, want); have != n {
			t.Errorf("%q is on the page %d times, want %d", want, have, n)
		}
	}
}

// TestHostile: names of ranks, hosts, paths and logs cannot break out of their place in the page.
func TestHostile(t *testing.T) {
	const hostile = "</title></svg></pre><script>alert(1)</script><img src=//x onerror=a>\"'`{{.}}&amp;\x00\x1b[31m\u202e\ufeff\xff]]>-->${x}"
	p := gang(8)
	p.Hosts[0].Name, p.Hosts[0].Rack, p.Hosts[0].Switch, p.Hosts[0].Devices[1].Name, p.Hosts[0].Devices[1].UUID = hostile, hostile, hostile, hostile, hostile
	p.Hosts[0].Devices[2].Sick, p.Hosts[0].Links[1][2] = hostile, job.Link(hostile)
	for i := range p.Ranks {
		p.Ranks[i].Host = hostile
	}
	p.Ranks[1].Devices = []string{hostile}
	exit := job.Exit{Rank: 1, Host: hostile, Status: job.Lost, Text: hostile}
	line := job.Line{Source: hostile, Host: hostile, File: hostile, Line: 1, Text: hostile}
	code := 1
	events := []job.Event{
		{Time: start, Kind: job.KindCreated, Run: hostile, Spec: &job.Spec{Name: hostile, Ranks: 8, Command: []string{hostile}}, Batch: &job.BatchJob{System: hostile, ID: hostile}},
		{Time: start, Kind: job.KindFinding, Finding: &job.Finding{Check: hostile, Severity: hostile, Host: hostile, Text: hostile, Hint: hostile}},
		{Time: start, Kind: job.KindFinding, Finding: &job.Finding{Severity: job.SeverityError, Cause: &job.Cause{Evidence: []job.Line{{File: hostile, Text: hostile}}}}},
	}
	events = append(events, attemptEvents(1, 1, p)...)
	bad := &job.Progress{Step: 7, Epoch: -1, LossIs: hostile}
	events = append(events, progress(1, 1, 3, 5, 1), job.Event{Time: after(4), Kind: job.KindProgress, Attempt: 1, Rank: 1, Progress: bad},
		job.Event{Time: after(4), Kind: job.KindPlaced, Attempt: 1, Placement: &p, Explanation: &job.Explanation{Why: []string{hostile}}},
		job.Event{Time: after(5), Kind: job.KindAttempt, Attempt: 1, ResumeFrom: hostile, LogDir: hostile},
		job.Event{Time: after(5), Kind: job.KindHealth, Attempt: 1, Host: hostile, Text: hostile, Hint: hostile, Health: &job.Health{}},
		job.Event{Time: after(5), Kind: job.KindGPU, Attempt: 1, Host: hostile, Text: hostile, Hint: hostile, GPU: &job.GPU{}},
		job.Event{Time: after(5), Kind: job.KindStraggler, Attempt: 1, Text: hostile, Straggler: &job.StragglerReport{Host: hostile, Text: hostile}},
		job.Event{Time: after(5), Kind: job.KindHang, Attempt: 1, Text: hostile, Hang: &job.HangReport{Text: hostile, Why: hostile, Ranks: []int{1},
			Groups: []job.StackGroup{{Ranks: []int{1}, Where: hostile, State: hostile, Frames: []job.Frame{{Function: hostile, File: hostile, Line: 1}}}}}},
		job.Event{Time: after(6), Kind: job.KindOutcome, Attempt: 1, Outcome: &job.Outcome{Exits: []job.Exit{exit}}},
		job.Event{Time: after(6), Kind: job.KindExit, Attempt: 1, Exit: &exit},
		job.Event{Time: after(6), Kind: job.KindCheckpoint, Attempt: 1, Checkpoint: &job.Checkpoint{Path: hostile, Time: after(2), Step: 3}},
		job.Event{Time: after(6), Kind: job.KindCause, Attempt: 1, Cause: &job.Cause{Category: hostile, Signature: hostile + "s", Rank: 1, Host: hostile, Text: hostile, Hint: hostile, Evidence: []job.Line{line}, After: []job.Line{line}}},
		job.Event{Time: after(6), Kind: job.KindVerdict, Attempt: 1, Verdict: &job.Verdict{Action: hostile, Reason: hostile}},
		job.Event{Time: after(6), Kind: job.KindCurve, Attempt: 1, Text: hostile, Curve: &job.CurveVerdict{Kind: hostile, Metric: hostile, Source: hostile, Text: hostile}},
		job.Event{Time: after(6), Kind: job.KindSave, Attempt: 1, Text: hostile, Save: &job.SaveReport{State: job.SaveBroken, Why: hostile, Checkpoint: job.Checkpoint{Path: hostile}}},
		job.Event{Time: after(6), Kind: job.KindNote, Text: hostile},
		job.Event{Time: after(7), Kind: job.KindEnded, State: hostile, Text: hostile, Hint: hostile, ExitCode: &code, ExitWhy: hostile})
	curve := Curve{Name: hostile, Points: []Point{{1, 1}, {2, math.NaN()}, {3, math.Inf(1)}, {4, 3}}}
	page := write(t, Extra{Command: hostile, Notes: []string{hostile}, Vitals: &vitals.Vitals{Attempt: 1, Ranks: []vitals.Rank{{Rank: 1, Odd: []vitals.Oddity{hostile}}}},
		Curves: []Curves{{Attempt: 1, Loss: curve, Metric: curve, Throughput: curve}}}, events...)
	if n := strings.Count(page, "&lt;script&gt;alert(1)"); n < 40 {
		t.Errorf("the page shows the hostile text %d times, want 40 at least: the test does not reach all of the page", n)
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<img") {
		t.Error("a text has become an element")
	}
}

// TestLarge: the page of a large run is small, and is made in bounded memory.
func TestLarge(t *testing.T) {
	const ranks, points = 512, 1_000_000
	events := append([]job.Event{spec(ranks)}, attemptEvents(1, 1, gang(ranks))...)
	var r Recorder
	for _, e := range events {
		r.Add(e)
	}
	long := strings.Repeat("a long line ", 1000)
	var exits []job.Exit
	for rank := range ranks {
		r.Add(job.Event{Time: after(2), Kind: job.KindHealth, Attempt: 1, Host: "h0", Text: fmt.Sprint(rank, long), Hint: long, Health: &job.Health{Severity: job.SeverityWarning}})
		r.Add(job.Event{Time: after(2), Kind: job.KindFinding, Finding: &job.Finding{Severity: job.SeverityWarning, Host: fmt.Sprint("h", rank), Text: long, Hint: long}})
		exits = append(exits, job.Exit{Rank: rank, Host: "h0", Status: job.Lost, Text: long})
	}
	loss := Curve{Name: "loss"}
	for i := range points {
		v := 10 - float64(i)/points + float64(i%7)
		if i == points/2 {
			v = 1e6 // a single spike
		}
		loss.Points = append(loss.Points, Point{float64(i), v})
		if i%4 == 0 {
			r.Add(progress(1, i/4%ranks, 2+float64(i)/100, int64(i), v))
		}
	}
	for n := 2; n <= 100; n++ {
		for _, e := range attemptEvents(n, 2+points/100+float64(n), gang(ranks)) {
			r.Add(e)
		}
		r.Add(job.Event{Time: after(3 + points/100 + float64(n)), Kind: job.KindOutcome, Attempt: n, Outcome: &job.Outcome{Exits: exits}})
		line := job.Line{Text: long, File: long}
		c := &job.Cause{Text: long, Hint: long, Rank: 3, Host: "h0"}
		for range 100 {
			c.Evidence, c.After = append(c.Evidence, line), append(c.After, line)
		}
		r.Add(job.Event{Time: after(3 + points/100 + float64(n)), Kind: job.KindCause, Attempt: n, Cause: c})
	}
	for _, p := range r.paces {
		if n := cap(p.steps.points) + cap(p.loss.points); n > 8*maxPoints {
			t.Errorf("the recorder keeps %d points", n)
		}
	}
	var b bytes.Buffer
	if err := r.Write(&b, Extra{Now: after(20000), Curves: []Curves{{Attempt: 1, Loss: loss, Throughput: loss, Metric: loss}}}); err != nil {
		t.Fatal(err)
	}
	if limit := 2_000_000; b.Len() > limit {
		t.Errorf("the page has %d bytes, want at most %d", b.Len(), limit)
	}
	t.Logf("%d bytes", b.Len())
	checkPage(t, b.String())
}

// TestKinds: every kind of event has a mark, or is listed in unmarked.
func TestKinds(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../job/event.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	none := map[job.Kind]bool{}
	for _, k := range unmarked {
		none[k] = true
		if _, ok := marking[k]; ok {
			t.Errorf("%s is marked, and listed as not marked", k)
		}
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "Kind") {
			return true
		}
		found++
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		kind := job.Kind(text)
		if _, ok := marking[kind]; !ok && !none[kind] {
			t.Errorf("job.%s has no mark: add it to marking or to unmarked", v.Names[0].Name)
		}
		// An event may lack the fields of its kind. markOf must not panic.
		markOf(job.Event{Kind: kind})
		return true
	})
	if found < 30 {
		t.Errorf("found %d kinds of events in internal/job/event.go: the test does not find them", found)
	}
}
