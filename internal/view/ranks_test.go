package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/vitals"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

var begun = time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local)

// placed returns the first events of a run with a gang of that many ranks, which has run for a minute.
func placed(ranks int) []job.Event {
	var places []job.Rank
	events := []job.Event{{Time: begun, Kind: job.KindCreated, Run: "r", Spec: &job.Spec{Command: []string{"train"}, Ranks: ranks}}}
	for rank := range ranks {
		places = append(places, job.Rank{Rank: rank, Host: fmt.Sprintf("h%d", rank/8+1)})
	}
	events = append(events, job.Event{Time: begun, Kind: job.KindPlaced, Attempt: 1, Placement: &job.Placement{Ranks: places}},
		job.Event{Time: begun, Kind: job.KindState, State: job.StateRunning}, job.Event{Time: begun, Kind: job.KindAttempt, Attempt: 1})
	for rank, p := range places {
		events = append(events, job.Event{Time: begun, Kind: job.KindStarted, Attempt: 1, Rank: rank, Host: p.Host, PID: 100 + rank})
	}
	return events
}

// lifeOf returns the vitals of that many ranks after a minute with a step every second. change changes the last
// pulse of each rank.
func lifeOf(ranks int, change func(*job.Pulse)) *vitals.Vitals {
	var f vitals.Fold
	for s := range 61 {
		p := job.Pulses{Host: "h1", Time: begun.Add(time.Duration(s) * time.Second), Every: job.Duration(time.Second)}
		for rank := range ranks {
			loss := 0.25
			pulse := job.Pulse{
				Rank: rank, State: job.ProcessRunning, PID: 200 + rank, Processes: 1, CPU: job.Duration(s) * job.Duration(time.Second), RSS: 3 << 30,
				Output: int64(s), Moves: int64(s), Progress: &job.Progress{Step: int64(s), Total: 1000, Epoch: -1, Loss: &loss},
			}
			if s == 60 {
				change(&pulse)
			}
			p.Ranks = append(p.Ranks, pulse)
		}
		f.Add(begun.Add(time.Duration(s)*time.Second), 1, p)
	}
	v := f.Vitals(begun.Add(time.Minute))
	v.Every = job.Duration(2 * time.Second)
	return &v
}

func textOf(t *testing.T, s Status, all bool) string {
	t.Helper()
	var out strings.Builder
	if err := s.Text(&out, begun.Add(time.Minute), all); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "up for  ")
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}

func TestStatusTable(t *testing.T) {
	events := placed(4)
	v := lifeOf(4, func(p *job.Pulse) {
		switch p.Rank {
		case 1:
			p.State = job.ProcessStopped
		case 2:
			p.Progress, p.CPU = nil, job.Duration(59*time.Second)
		case 3:
			p.GPU = &job.GPUPulse{Utilization: 93, Power: 610}
		}
	})
	status := NewStatus(home.Run{ID: "r"}, runreport.Fold(events), events, v)
	const want = ` 1m
gang     step 60 of 1000, 60/min, 15m40s left, CPU 300%, RSS 12G, unusual: ranks 1-2
RANK  HOST  PID  STATE    STEP  /MIN  LOSS  IDLE  SILENT  CPU   RSS   GPU  POWER
0     h1    200  running  60    60    0.25  0s    0s      100%  3.0G
1     h1    201  stopped  60    60    0.25  0s    0s      100%  3.0G
2     h1    202  running                          0s      0%    3.0G         CPU unlike the others
3     h1    203  running  60    60    0.25  0s    0s      100%  3.0G  93%  610W`
	if got := textOf(t, status, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestNewestStep: the table shows the step in the journal if it is newer than the figures of the rank.
func TestNewestStep(t *testing.T) {
	events := placed(2)
	for rank, after := range []time.Duration{61 * time.Second, 30 * time.Second} {
		loss := 0.125
		events = append(events, job.Event{Time: begun.Add(after), Kind: job.KindProgress, Attempt: 1, Rank: rank, Progress: &job.Progress{Step: int64(after.Seconds()), Epoch: -1, Loss: &loss}})
	}
	s := NewStatus(home.Run{}, runreport.Fold(events), events, lifeOf(2, func(*job.Pulse) {}))
	for rank, want := range []string{"61 0.125", "60 0.25"} {
		if got := fmt.Sprint(s.Now[rank].LastStep(), " ", s.Now[rank].loss()); got != want {
			t.Errorf("rank %d: got step and loss %s, want %s", rank, got, want)
		}
	}
}

// TestStatusOfLargeGang: unusual ranks are shown even for a large gang.
func TestStatusOfLargeGang(t *testing.T) {
	events := placed(512)
	v := lifeOf(512, func(p *job.Pulse) {
		switch {
		case p.Rank == 300:
			p.State = job.ProcessDisk
		case p.Rank >= 400 && p.Rank < 450:
			p.RSS *= 10
		}
	})
	status := NewStatus(home.Run{ID: "r"}, runreport.Fold(events), events, v)
	got := textOf(t, status, false)
	lines := strings.Split(got, "\n")
	if len(lines) != 3+mostRanks+1 || !strings.HasPrefix(lines[3], "300 ") || !strings.HasPrefix(lines[4], "400 ") {
		t.Errorf("got\n%s", got)
	}
	if want := "and 488 more ranks: gangrun status --ranks r shows all"; lines[len(lines)-1] != want {
		t.Errorf("it ends with %q", lines[len(lines)-1])
	}
	if n := strings.Count(textOf(t, status, true), "\n"); n != 514 {
		t.Errorf("all ranks are %d lines", n)
	}
}

// TestNoVitals: only ranks that have not ended have vitals.
func TestNoVitals(t *testing.T) {
	v := lifeOf(2, func(*job.Pulse) {})
	exit := job.Event{Kind: job.KindExit, Attempt: 1, Exit: &job.Exit{Rank: 1, Host: "h1", Status: job.Exited}}
	for name, c := range map[string]struct {
		then []job.Event
		v    *vitals.Vitals
		want []bool
	}{
		"a gang runs":       {nil, v, []bool{true, true}},
		"a rank has ended":  {[]job.Event{exit}, v, []bool{true, false}},
		"none are known":    {nil, nil, []bool{false, false}},
		"of an attempt ago": {[]job.Event{{Kind: job.KindPlaced, Attempt: 2, Placement: &job.Placement{Ranks: make([]job.Rank, 2)}}}, v, []bool{false, false}},
		"the gang is gone":  {[]job.Event{{Time: begun, Kind: job.KindOutcome, Attempt: 1, Outcome: &job.Outcome{}}}, v, []bool{false, false}},
		"the run has ended": {[]job.Event{{Time: begun, Kind: job.KindEnded, State: job.StateFailed}}, v, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			events := append(placed(2), c.then...)
			s := NewStatus(home.Run{}, runreport.Fold(events), events, c.v)
			for rank, want := range c.want {
				if got := s.Now[rank].Vitals != nil; got != want {
					t.Errorf("rank %d has vitals: %v", rank, got)
				}
			}
			if any := c.want[0] || c.want[1]; (s.Gang != nil) != any {
				t.Errorf("the gang has vitals: %v", s.Gang != nil)
			}
		})
	}
	events := placed(2)
	old := NewStatus(home.Run{}, runreport.Fold(events), events, v)
	if got := old.lifeLine(begun.Add(3 * time.Minute)); !strings.HasSuffix(got, "; measured 2m00s ago") {
		t.Errorf("old figures: %q", got)
	}
}

func TestFigures(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 192 * time.Second: "3m12s", 5*time.Hour + 3*time.Minute: "5h03m", 292 * time.Hour: "12d04h",
	} {
		if got := Short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for size, want := range map[float64]string{0: "0B", 999: "999B", 1000: "1.0K", 10 << 10: "10K", 999 << 20: "999M", 3 << 30: "3.0G", 1 << 50: "1.0P"} {
		if got := Size(size); got != want || len(got) > 5 {
			t.Errorf("%v is %q, want %q", size, got, want)
		}
	}
}

func TestStackLines(t *testing.T) {
	deep := []job.Frame{{Function: "??", File: "python3"}, {}}
	for range 20 {
		deep = append(deep, job.Frame{Function: "deeper", File: "loader.py", Line: 7})
	}
	s := home.Stacks{
		Run: "r", Attempt: 2, At: begun, Took: job.Duration(812 * time.Millisecond), Missing: []int{6, 7},
		Groups: []job.StackGroup{
			{Ranks: []int{0, 1, 2, 4, 5}, Where: "MPI_Allreduce (train.py:120 average)", State: job.ProcessRunning, Frames: []job.Frame{
				{Function: "MPI_Allreduce", File: "libmpi.so.12", Native: true}, {Function: "average", File: "train.py", Line: 120},
			}},
			{Ranks: []int{3}, Where: "read (\x1b[31mloader.py:88 next)", State: job.ProcessSleeping, Frames: deep},
		},
		Stacks: []job.RankStack{{Rank: 0, Host: "h1"}, {Rank: 3, Host: "h1", Error: "there is no py-spy"}},
	}
	want := `ranks 0-2,4-5 in MPI_Allreduce (train.py:120 average) (running)
    MPI_Allreduce (libmpi.so.12)
    average (train.py:120)
rank 3 in read (loader.py:88 next) (sleeping)`
	got := StackLines(s)
	if text := strings.Join(got[:4], "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if len(got) != 4+mostFrames+3 || got[len(got)-3] != "    and 8 more frames" || got[len(got)-2] != "note: rank 3 on h1: there is no py-spy" || got[len(got)-1] != "no answer from ranks 6-7" {
		t.Errorf("it ends with %q", got[4:])
	}
	var out strings.Builder
	if err := PrintStacks(&out, s); err != nil || !strings.HasPrefix(out.String(), "run r, attempt 2: stacks of 2 ranks, taken at 03:04:00 in 810ms\nranks 0-2") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}

func TestFollower(t *testing.T) {
	f := NewFollower(home.Run{ID: "r"})
	for _, e := range placed(16) {
		f.Add(e)
	}
	f.Add(job.Event{Time: begun, Kind: job.KindHang, Attempt: 1, Hang: &job.HangReport{Text: "no step"}, Text: "no\x1b[2Jstep"})
	f.Add(job.Event{Time: begun, Kind: job.KindStraggler, Attempt: 1, Straggler: &job.StragglerReport{Rank: 1}, Text: "rank 1 is slow", Hint: "look"})
	f.Add(job.Event{Time: begun, Kind: job.KindExit, Attempt: 1, Exit: &job.Exit{Rank: 2, Status: job.Exited, Code: 1}})
	if hosts, gpus := f.Places(); hosts != 2 || gpus != 0 {
		t.Errorf("%d hosts, %d GPUs", hosts, gpus)
	}
	var said []string
	for _, n := range f.News() {
		said = append(said, n.Text)
	}
	if got := strings.Join(said, "; "); got != "warning: nostep; warning: rank 1 is slow; hint: look" {
		t.Errorf("news: %q", got)
	}
	s := f.Status(job.StateLost, lifeOf(16, func(*job.Pulse) {}))
	if s.State != job.StateLost || s.Gang != nil || s.Now[0].State != "lost" || s.Now[2].State != "exited" || s.Last().Hang == nil || len(s.Last().Stragglers) != 1 {
		t.Errorf("lost: %+v", s)
	}
	if s = f.Status("", nil); s.State != job.StateRunning || s.Now[0].State != "running" || s.Now[2].Concern() != 2 {
		t.Errorf("running: %+v", s.Now)
	}
	for range 3 * mostNews {
		f.Add(job.Event{Time: begun, Kind: job.KindNote, Text: "again"})
	}
	if n := len(f.News()); n != mostNews {
		t.Errorf("%d messages are kept", n)
	}
}
