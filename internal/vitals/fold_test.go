package vitals

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at returns the time that many seconds after the first pulses.
func at(seconds float64) time.Time {
	return begun.Add(time.Duration(seconds * float64(time.Second)))
}

// pulses returns the pulses of a host whose clock is an hour ahead.
func pulses(host string, seconds float64, ranks ...job.Pulse) job.Pulses {
	return job.Pulses{Host: host, Time: at(seconds).Add(time.Hour), Every: job.Duration(time.Second), Ranks: ranks}
}

func seconds(s float64) job.Duration { return job.Duration(s * float64(time.Second)) }

// stepping returns a pulse of a rank that has printed one line at each step.
func stepping(rank int, step int64, cpu float64) job.Pulse {
	return job.Pulse{
		Rank: rank, State: job.ProcessRunning, CPU: seconds(cpu), RSS: 100 << 20, Output: 10 * step, Read: 1000 * step, Moves: step,
		Progress: &job.Progress{Step: step, Total: 1000, Epoch: -1},
	}
}

func TestFigures(t *testing.T) {
	var f Fold
	for s := range 100 { // two steps per second; rank 1 stops at second 60
		f.Add(at(float64(s)), 1, pulses("h1", float64(s), stepping(0, int64(2*s), float64(s)/2), stepping(1, int64(2*min(s, 60)), float64(min(s, 60)))))
	}
	v := f.Vitals(at(99.5))
	if len(v.Ranks) != 2 || v.Attempt != 1 {
		t.Fatalf("%+v", v)
	}
	busy, still := v.Ranks[0], v.Ranks[1]
	if *busy.CPU != 50 || *still.CPU != 0 || busy.Read != 2000 || still.Read != 0 {
		t.Errorf("CPU %v and %v percent, reading %v and %v", *busy.CPU, *still.CPU, busy.Read, still.Read)
	}
	if busy.Rate != 120 || busy.Silent != 0 || *busy.Idle != 0 || busy.Age != seconds(0.5) {
		t.Errorf("rank 0: %+v", busy)
	}
	if still.Silent != seconds(39) || *still.Idle != seconds(39) || still.Rate >= 120 || still.Rate <= 0 {
		t.Errorf("rank 1: silent %v, idle %v, %v steps a minute", still.Silent, *still.Idle, still.Rate)
	}
	g := v.Gang
	if g.Lowest != 120 || g.Highest != 198 || g.Total != 1000 || g.Rate != 120 || g.Left != job.Duration(401*time.Second) || g.CPU != 50 || g.RSS != 200<<20 {
		t.Errorf("gang %+v", g)
	}
	if v.Of(1).Step() != 120 || v.Of(2) != nil || (*Vitals)(nil).Of(0) != nil {
		t.Error("Of")
	}
}

// TestStill: a gang whose ranks make no steps any more has no rate, and no time until its end.
func TestStill(t *testing.T) {
	var f Fold
	add := func(s float64, step int64) Gang {
		f.Add(at(s), 1, pulses("h1", s, stepping(0, step, s), stepping(1, step, s)))
		return f.Vitals(at(s)).Gang
	}
	for s := range 60 {
		add(float64(s), int64(s))
	}
	if g := add(85, 59); g.Still != 0 || g.Rate <= 0 || g.Left <= 0 {
		t.Errorf("after a pause of 26 s: %+v", g)
	}
	if g := add(119, 59); g.Still != seconds(60) || g.Rate != 0 || g.Left != 0 {
		t.Errorf("after a minute without a step: %+v", g)
	}
	if g := add(120, 60); g.Still != 0 || g.Rate <= 0 {
		t.Errorf("the gang goes on: %+v", g)
	}
	// Steps may take minutes. The rate must then not be 0.
	for s := range 10 {
		add(float64(200+200*s), int64(61+s))
	}
	if g := add(2180, 70); g.Still != 0 {
		t.Errorf("180 s after a step of 200 s: %+v", g)
	}
}

// TestUnknown checks that there are no rates after one pulse, or after the clock of the host was set back.
func TestUnknown(t *testing.T) {
	var f Fold
	f.Add(at(0), 1, pulses("h1", 0, stepping(0, 7, 3)))
	r := f.Vitals(at(1)).Ranks[0]
	if r.CPU != nil || r.Rate != 0 || r.Silent != 0 || r.Step() != 7 {
		t.Errorf("after one pulse: %+v", r)
	}
	back := pulses("h1", -100, stepping(0, 8, 4))
	f.Add(at(2), 1, back)
	if r = f.Vitals(at(2)).Ranks[0]; r.CPU != nil || r.Step() != 8 {
		t.Errorf("after the clock was set back: %+v", r)
	}
	text, err := json.Marshal(f.Vitals(at(2)))
	if err != nil {
		t.Fatal(err)
	}
	var again Vitals
	if err := json.Unmarshal(text, &again); err != nil || again.Ranks[0].Step() != 8 || again.Ranks[0].RSS != 100<<20 {
		t.Errorf("%s was read as %+v, %v", text, again, err)
	}
}

// TestMembers checks that a rank that is missing from the pulses of its host counts as ended. A new attempt replaces
// all ranks. The ranks of a host that sends no pulses count as odd.
func TestMembers(t *testing.T) {
	var f Fold
	f.Add(at(0), 1, pulses("h1", 0, stepping(0, 1, 0), stepping(1, 1, 0)))
	f.Add(at(0), 1, pulses("h2", 0, stepping(2, 1, 0)))
	f.Add(at(30), 1, pulses("h1", 30, stepping(0, 9, 0)))
	v := f.Vitals(at(31))
	var ranks []int
	for _, r := range v.Ranks {
		ranks = append(ranks, r.Rank)
	}
	if !slices.Equal(ranks, []int{0, 2}) {
		t.Errorf("ranks %v", ranks)
	}
	if v.Of(0).Is(OddMissing) || !v.Of(2).Is(OddMissing) || !slices.Equal(v.Gang.Odd, []int{2}) {
		t.Errorf("missing: %+v, odd %v", v.Ranks, v.Gang.Odd)
	}
	f.Add(at(40), 2, pulses("h1", 40, stepping(0, 0, 0)))
	if v = f.Vitals(at(40)); v.Attempt != 2 || len(v.Ranks) != 1 || v.Gang.Highest != 0 {
		t.Errorf("a new attempt: %+v", v)
	}
}

func TestOddities(t *testing.T) {
	gpu := func(load int) *job.GPUPulse { return &job.GPUPulse{Utilization: load} }
	for name, c := range map[string]struct {
		change func(*job.Pulse)
		want   []Oddity
	}{
		"as the others":     {func(*job.Pulse) {}, nil},
		"stopped":           {func(p *job.Pulse) { p.State = job.ProcessStopped }, []Oddity{OddState}},
		"in the kernel":     {func(p *job.Pulse) { p.State = job.ProcessDisk }, []Oddity{OddState}},
		"asleep":            {func(p *job.Pulse) { p.State = job.ProcessSleeping }, nil},
		"three steps less":  {func(p *job.Pulse) { p.Progress = &job.Progress{Step: p.Progress.Step - 3} }, nil},
		"far behind":        {func(p *job.Pulse) { p.Progress = &job.Progress{Step: p.Progress.Step - 50} }, []Oddity{OddStep}},
		"prints no steps":   {func(p *job.Pulse) { p.Progress = nil }, nil},
		"no number":         {func(p *job.Pulse) { q := *p.Progress; q.LossIs = job.LossNaN; p.Progress = &q }, []Oddity{OddLoss}},
		"uses no CPU time":  {func(p *job.Pulse) { p.CPU = 0 }, []Oddity{OddCPU}},
		"uses half as much": {func(p *job.Pulse) { p.CPU /= 2 }, nil},
		"uses all cores":    {func(p *job.Pulse) { p.CPU *= 8 }, []Oddity{OddCPU}},
		"uses much memory":  {func(p *job.Pulse) { p.RSS *= 20 }, []Oddity{OddMemory}},
		"its GPU is idle":   {func(p *job.Pulse) { p.GPU = gpu(0) }, []Oddity{OddGPU}},
		"its GPU is slower": {func(p *job.Pulse) { p.GPU = gpu(60) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var f Fold
			for s := range 100 {
				var all []job.Pulse
				for rank := range 5 {
					p := stepping(rank, int64(s), 0)
					p.GPU = gpu(90)
					if s == 99 {
						p.CPU = seconds(0.5)
					}
					if s == 99 && rank == 3 {
						c.change(&p)
					}
					all = append(all, p)
				}
				f.Add(at(float64(s)), 1, pulses("h1", float64(s), all...))
			}
			v := f.Vitals(at(99))
			if got := v.Of(3).Odd; !slices.Equal(got, c.want) {
				t.Errorf("it differs in %v, want %v", got, c.want)
			}
			for _, other := range []int{0, 1, 2, 4} {
				if got := v.Of(other).Odd; got != nil {
					t.Errorf("rank %d differs in %v", other, got)
				}
			}
		})
	}
}

// TestSeldom checks hosts with many ranks, which send pulses less often. A rank must not count as behind only because
// its last pulse is older than those of the others.
func TestSeldom(t *testing.T) {
	var f Fold
	for s := range 60 {
		f.Add(at(float64(s)), 1, pulses("h1", float64(s), stepping(0, int64(s), 0), stepping(1, int64(s), 0), stepping(2, int64(s), 0)))
		if s%12 == 0 {
			p := pulses("h2", float64(s), stepping(3, int64(s), 0))
			p.Every = job.Duration(12 * time.Second)
			f.Add(at(float64(s)), 1, p)
		}
	}
	v := f.Vitals(at(59))
	if r := v.Of(3); r.Odd != nil || r.Age != seconds(11) || r.Silent != 0 || v.Gang.Lowest != 48 {
		t.Errorf("%+v of %+v", r, v.Gang)
	}
}

func TestOld(t *testing.T) {
	v := Vitals{At: at(0), Every: job.Duration(2 * time.Second)}
	if v.Old(at(10)) || !v.Old(at(20)) || v.Old(at(-100)) || v.Age(at(-100)) != 0 {
		t.Error("Old")
	}
}

func TestWith(t *testing.T) {
	earlier := Vitals{Attempt: 2, Ranks: []Rank{{Rank: 0, PID: 1}, {Rank: 1, PID: 1}, {Rank: 3, PID: 1}}}
	now := Vitals{Attempt: 2, Ranks: []Rank{{Rank: 1, PID: 2}, {Rank: 2, PID: 2}}}
	var have []string
	for _, r := range now.With(earlier).Ranks {
		have = append(have, fmt.Sprint(r.Rank, ":", r.PID))
	}
	if want := []string{"0:1", "1:2", "2:2", "3:1"}; !slices.Equal(have, want) {
		t.Errorf("ranks %v, want %v", have, want)
	}
	now.Attempt = 3
	if have := now.With(earlier); len(have.Ranks) != 2 {
		t.Errorf("another attempt has the ranks of the earlier one: %v", have.Ranks)
	}
}
