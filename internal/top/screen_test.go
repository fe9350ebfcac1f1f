package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/internal/vitals"
)

var begun = time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local)

// dataOf returns the data of a gang of that size that has run for a minute. In large gangs, rank 77 is
// stopped, rank 300 is behind, and rank 301 uses much memory.
func dataOf(ranks int) Data {
	follower := view.NewFollower(home.Run{ID: "20260102-030400-llama-7f3a"})
	var places []job.Rank
	for rank := range ranks {
		places = append(places, job.Rank{Rank: rank, Host: fmt.Sprintf("node%02d", rank/8), Devices: []string{"GPU-0"}})
	}
	add := func(e job.Event) {
		e.Time = begun
		follower.Add(e)
	}
	add(job.Event{Kind: job.KindCreated, Run: "20260102-030400-llama-7f3a", Spec: &job.Spec{Command: []string{"train"}, Ranks: ranks}})
	add(job.Event{Kind: job.KindPlaced, Attempt: 1, Placement: &job.Placement{Ranks: places}})
	add(job.Event{Kind: job.KindAttempt, Attempt: 1})
	add(job.Event{Kind: job.KindState, State: job.StateRunning})
	for rank, p := range places {
		add(job.Event{Kind: job.KindStarted, Attempt: 1, Rank: rank, Host: p.Host, PID: 1000 + rank})
	}
	var fold vitals.Fold
	for s := range 61 {
		byHost := map[string][]job.Pulse{}
		for rank, place := range places {
			loss := 2.25
			p := job.Pulse{
				Rank: rank, State: job.ProcessRunning, PID: 1000 + rank, Processes: 3, CPU: job.Duration(s) * job.Duration(time.Second), RSS: 3 << 30,
				Output: int64(s), Moves: int64(s), Progress: &job.Progress{Step: int64(s), Total: 1000, Epoch: -1, Loss: &loss},
				GPU: &job.GPUPulse{Utilization: 97, Memory: 40, Power: 600}, Read: int64(s) << 20, Written: int64(s) << 10,
			}
			switch rank {
			case 77:
				p.State = job.ProcessStopped
			case 300:
				p.Progress.Step = min(p.Progress.Step, 20)
			case 301:
				p.RSS = 30 << 30
			}
			byHost[place.Host] = append(byHost[place.Host], p)
		}
		for host, all := range byHost {
			fold.Add(begun.Add(time.Duration(s)*time.Second), 1, job.Pulses{Host: host, Time: begun.Add(time.Duration(s) * time.Second), Every: job.Duration(time.Second), Ranks: all})
		}
	}
	now := begun.Add(time.Minute)
	v := fold.Vitals(now)
	for range 12 {
		add(job.Event{Kind: job.KindNote, Text: strings.Repeat("a long note ", 30)})
	}
	d := Data{Status: follower.Status("", &v), News: follower.News(), At: now}
	d.Hosts, d.GPUs = follower.Places()
	return d
}

// screenOf returns a screen of a size, and a function that returns its lines without colours.
func screenOf(d Data, width, height int) (*Screen, func() []string) {
	s := NewScreen()
	s.Width, s.Height = width, height
	s.SetData(d)
	return s, func() []string {
		var plain []string
		for _, line := range s.Lines() {
			plain = append(plain, strings.TrimRight(ansi.Strip(line), " "))
		}
		return plain
	}
}

// firstRanks returns the numbers of the first n ranks in the table.
func firstRanks(lines []string, n int) string {
	var ranks []string
	for _, line := range lines[headLines : headLines+n] {
		ranks = append(ranks, strings.Fields(strings.TrimPrefix(line, "!"))[0])
	}
	return strings.Join(ranks, " ")
}

// TestSizes: the lines fit any size of the screen.
func TestSizes(t *testing.T) {
	for _, ranks := range []int{0, 1, 4, 512} {
		d := dataOf(ranks)
		for _, width := range []int{1, 20, 40, 80, 120, 200} {
			for _, height := range []int{1, 3, 8, 24, 50} {
				s, lines := screenOf(d, width, height)
				for _, key := range []string{"n", "s", "?", "end", "esc", "pgdown", "end"} {
					s.Key(key)
					got := s.Lines()
					if height >= headLines+3 && len(got) != height || len(got) > height {
						t.Errorf("%d ranks at %dx%d after %s: %d lines", ranks, width, height, key, len(got))
					}
					for _, line := range got {
						if w := ansi.StringWidth(line); w > width {
							t.Errorf("%d ranks at %dx%d after %s: a line is %d wide: %q", ranks, width, height, key, w, line)
						}
					}
				}
				_ = lines
			}
		}
	}
}

func TestSmall(t *testing.T) {
	_, lines := screenOf(dataOf(4), 80, 24)
	got := lines()
	want := []string{
		"20260102-030400-llama-7f3a  running  attempt 1  up 1m00s  4 ranks on 1 host, 4 G",
		"step 60 of 1000, 60/min, 15m40s left, CPU 400%, RSS 12G",
		"",
		" *RANK  HOST     PID  STATE    STEP  /MIN  LOSS  IDLE  SILENT   CPU   RSS  GPU",
		"     0  node00  1000  running    60    60  2.25    0s      0s  100%  3.0G  97%",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d is\n%q, want\n%q", i, got[i], want[i])
		}
	}
	if !strings.HasPrefix(got[19], "03:04:00 note: a long note") || !strings.HasPrefix(got[23], "q quit  ? help") {
		t.Errorf("it ends with\n%s", strings.Join(got[18:], "\n"))
	}
	_, lines = screenOf(dataOf(4), 200, 50)
	if title := lines()[3]; title != " *RANK  HOST     PID  STATE    STEP  /MIN  LOSS  IDLE  SILENT   CPU   RSS  READ/S  WRITE/S  PROCS  GPU  GPUMEM  POWER" {
		t.Errorf("wide: %q", title)
	}
}

// TestLarge: in a large gang, the ranks that differ from the others are shown first.
func TestLarge(t *testing.T) {
	s, lines := screenOf(dataOf(512), 200, 50)
	got := lines()
	if ranks := firstRanks(got, 5); ranks != "77 300 301 0 1" {
		t.Errorf("ranks %s", ranks)
	}
	if !strings.HasPrefix(got[4], "! ") || !strings.Contains(got[4], "stopped") || !strings.HasSuffix(got[5], "behind the others") || !strings.HasSuffix(got[6], "more memory than the others") {
		t.Errorf("got\n%s", strings.Join(got[4:7], "\n"))
	}
	if !strings.HasPrefix(got[49], "1-37 of 512  q quit") || !strings.Contains(got[1], "steps 20-60 of 1000") || got[2] != "unusual: ranks 77,300-301" {
		t.Errorf("got\n%s\n%s\n%s", got[1], got[2], got[49])
	}
	if styled := s.Lines()[4]; !strings.Contains(styled, alarm.Styled("stopped")) {
		t.Errorf("the state stands out not: %q", styled)
	}
	for _, c := range []struct{ keys, want string }{
		{"u", "0 1 2"}, {"r", "511 510 509"}, {"t", "300 0 1"}, {"m", "301 0 1"}, {"c", "0 1 2"}, {"h", "0 1 2"}, {"r", "511 510 509"},
		{"n pgdown", "37 38 39"}, {"down", "38 39 40"}, {"up up", "36 37 38"}, {"pgup", "0 1 2"}, {"up", "0 1 2"}, {"end", "475 476 477"}, {"pgdown", "475 476 477"},
		{"home", "0 1 2"}, {"end u", "77 300 301"}, {"x", "77 300 301"},
	} {
		for key := range strings.FieldsSeq(c.keys) {
			if a := s.Key(key); a != Nothing {
				t.Errorf("%s asks for %d", key, a)
			}
		}
		if ranks := firstRanks(lines(), 3); ranks != c.want {
			t.Errorf("after %s: ranks %s, want %s", c.keys, ranks, c.want)
		}
	}
}

func TestStacksPane(t *testing.T) {
	s, lines := screenOf(dataOf(4), 80, 24)
	if a := s.Key("s"); a != AskStacks {
		t.Errorf("s asks for %d", a)
	}
	if got := lines()[headLines]; !strings.HasPrefix(got, "asking the run's controller") {
		t.Errorf("meanwhile: %q", got)
	}
	if a := s.Key("s"); a != Nothing {
		t.Errorf("s asks for %d again", a)
	}
	var stacks []string
	for i := range 100 {
		stacks = append(stacks, fmt.Sprint("line ", i))
	}
	s.SetStacks(stacks)
	if got := lines()[headLines]; got != "line 0" {
		t.Errorf("then: %q", got)
	}
	s.Key("end")
	if got := lines()[headLines+s.room()-1]; got != "line 99" {
		t.Errorf("at the end: %q", got)
	}
	if a := s.Key("s"); a != AskStacks {
		t.Errorf("s asks for %d in the end", a)
	}
	s.Key("esc")
	if got := firstRanks(lines(), 2); got != "0 1" {
		t.Errorf("back: %s", got)
	}
	for _, key := range []string{"q", "ctrl+c"} {
		if a := s.Key(key); a != Quit {
			t.Errorf("%s asks for %d", key, a)
		}
	}
}

// TestAlarms: problems of the run are shown above the table.
func TestAlarms(t *testing.T) {
	d := dataOf(4)
	d.Last().Hang = &job.HangReport{Text: "no new step for 10m0s at step 60; rank 3 is stopped"}
	d.Trouble = "these figures are 3m00s old"
	_, lines := screenOf(d, 120, 24)
	if got := lines(); got[2] != "hang: no new step for 10m0s at step 60; rank 3 is stopped" || !strings.HasSuffix(got[1], "these figures are 3m00s old") {
		t.Errorf("got\n%s", strings.Join(got[:3], "\n"))
	}
	d.State, d.Reason = job.StateFailed, "rank 3 failed"
	_, lines = screenOf(d, 120, 24)
	if got := lines()[2]; got != "rank 3 failed" {
		t.Errorf("in the end: %q", got)
	}
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	if err := Print(&out, dataOf(512), 100); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if n := strings.Count(text, "node"); n != 512 || strings.Contains(text, "\x1b") || strings.Contains(text, "q quit") || strings.Count(text, " note: ") != mostBelow {
		t.Errorf("%d ranks in\n%s", n, text)
	}
	if err := Print(failing{}, dataOf(1), 100); err == nil {
		t.Error("a failure is not told")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no") }

func BenchmarkLines(b *testing.B) {
	s, _ := screenOf(dataOf(512), 200, 50)
	for b.Loop() {
		s.Lines()
	}
}
