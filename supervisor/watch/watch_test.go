package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// gangOf has simulated ranks, two on each host. Their pulses come once a second.
type gangOf struct {
	watch  *Watch
	now    time.Time
	ranks  []job.Pulse
	frozen map[string]bool // hosts whose pulses do not come
}

var begin = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const timeout = 10 * time.Second

func newGang(ranks int) *gangOf {
	g := &gangOf{watch: New(timeout, Learnt{}), now: begin, frozen: map[string]bool{}}
	for r := range ranks {
		g.ranks = append(g.ranks, job.Pulse{Rank: r, PID: 100 + r, State: job.ProcessSleeping, Processes: 1})
	}
	return g
}

// second lets a second pass, and calls does for each rank.
func (g *gangOf) second(does func(*job.Pulse)) {
	g.now = g.now.Add(time.Second)
	hosts := map[string][]job.Pulse{}
	for i := range g.ranks {
		host := fmt.Sprintf("h%d", i/2+1)
		if !g.frozen[host] {
			does(&g.ranks[i])
		}
		hosts[host] = append(hosts[host], g.ranks[i])
	}
	for _, host := range []string{"h1", "h2", "h3", "h4"} {
		if len(hosts[host]) > 0 && !g.frozen[host] {
			g.watch.Add(job.Pulses{Host: host, Time: g.now, Every: job.Duration(time.Second), Ranks: hosts[host]}, g.now)
		}
	}
}

// until lets up to limit seconds pass. It returns the hang and after how many seconds it was found.
func (g *gangOf) until(limit int, does func(*job.Pulse)) (*job.HangReport, int) {
	for n := range limit {
		g.second(does)
		if h := g.watch.Hang(); h != nil {
			return h, n + 1
		}
	}
	return nil, limit
}

// The functions below are what a rank may do in a second.
func works(p *job.Pulse)  { p.State = job.ProcessRunning; p.CPU += job.Duration(900 * time.Millisecond) }
func sleeps(p *job.Pulse) { p.State = job.ProcessSleeping }
func stops(p *job.Pulse)  { p.State = job.ProcessStopped }
func prints(p *job.Pulse) { p.Output += 40 }
func reads(p *job.Pulse)  { p.Read += 8 << 20 }
func grows(p *job.Pulse)  { p.Faults += 5000 }
func steps(p *job.Pulse) {
	works(p)
	prints(p)
	step := int64(0)
	if p.Progress != nil {
		step = p.Progress.Step + 1
	}
	p.Progress = &job.Progress{Step: step, Epoch: -1}
	p.Moves++
}

// but returns what all ranks do, except those in but.
func but(all func(*job.Pulse), other func(*job.Pulse), ranks ...int) func(*job.Pulse) {
	return func(p *job.Pulse) {
		if slices.Contains(ranks, p.Rank) {
			other(p)
		} else {
			all(p)
		}
	}
}

func TestHangsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		hang   func(*job.Pulse)
		before func(*job.Pulse)
		ranks  []int
		stage  job.HangStage
		within int // seconds
	}{
		"one is stopped, the others spin":      {but(works, stops, 3), steps, []int{3}, job.HangStep, 13},
		"one is stopped, the others go on":     {but(steps, stops, 3), steps, []int{3}, job.HangStep, 13},
		"one waits for a device, others sleep": {but(sleeps, func(p *job.Pulse) { p.State = job.ProcessDisk }, 1), steps, []int{1}, job.HangStep, 13},
		"one sleeps, the others spin":          {but(works, sleeps, 2), steps, []int{2}, job.HangStep, 13},
		"one spins, the others sleep":          {but(sleeps, works, 2), steps, []int{2}, job.HangStep, 13},
		"all spin":                             {works, steps, nil, job.HangStep, 13},
		"all sleep":                            {sleeps, steps, nil, job.HangStep, 13},
		"all sleep, and printed only":          {sleeps, func(p *job.Pulse) { works(p); prints(p) }, nil, job.HangSilent, 25},
		"one goes on printing that it waits":   {but(works, func(p *job.Pulse) { works(p); prints(p) }, 0), steps, nil, job.HangStep, 70},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGang(8)
			if h, n := g.until(30, c.before); h != nil {
				t.Fatalf("hung after %d s: %+v", n, h)
			}
			h, n := g.until(200, c.hang)
			if h == nil {
				t.Fatal("no hang was found")
			}
			if n > c.within || n <= int(timeout/time.Second) {
				t.Errorf("found after %d s, want within %d s, and after more than %s", n, c.within, timeout)
			}
			if !slices.Equal(h.Ranks, c.ranks) || h.Stage != c.stage {
				t.Errorf("ranks %v hold it up (%s) in stage %s, want %v in %s", h.Ranks, h.Why, h.Stage, c.ranks, c.stage)
			}
			if onlyOne := strings.HasSuffix(name, "the others go on"); onlyOne != strings.HasPrefix(Words(*h, g.now), "no progress of rank 3 for ") {
				t.Errorf("it says %q", Words(*h, g.now))
			}
			if silent := g.now.Sub(h.Since).Round(time.Second); silent > time.Duration(n)*time.Second || silent < timeout {
				t.Errorf("silent for %s after %d s", silent, n)
			}
		})
	}
}

// TestRankBehind: a rank that is a step behind the others holds them up, whatever its processes do.
func TestRankBehind(t *testing.T) {
	g := newGang(8)
	g.until(20, steps)
	g.second(but(steps, works, 5))
	h, _ := g.until(60, works)
	if h == nil || !slices.Equal(h.Ranks, []int{5}) || h.Step != 20 {
		t.Errorf("got %+v, want rank 5 at step 19, the others at 20", h)
	}
}

func TestNoFalseAlarm(t *testing.T) {
	busy := func(p *job.Pulse) { works(p) }
	for name, c := range map[string][]struct {
		seconds int
		does    func(*job.Pulse)
	}{
		"output only at the end":              {{2, func(p *job.Pulse) { works(p); prints(p) }}, {1000, busy}, {1, steps}},
		"a compilation at the start":          {{1, func(p *job.Pulse) { works(p); prints(p) }}, {40, func(p *job.Pulse) { works(p); grows(p) }}, {50, steps}},
		"weights from a slow disk":            {{1, func(p *job.Pulse) { works(p); prints(p) }}, {60, func(p *job.Pulse) { p.State = job.ProcessDisk; reads(p) }}, {50, steps}},
		"an evaluation that reads":            {{20, steps}, {40, but(works, func(p *job.Pulse) { works(p); reads(p) }, 0)}, {20, steps}},
		"evaluations that get longer":         {{20, steps}, {9, busy}, {20, steps}, {40, busy}, {20, steps}, {190, busy}, {20, steps}},
		"uneven steps":                        {{5, steps}, {8, busy}, {1, steps}, {1, busy}, {2, steps}, {30, busy}, {3, steps}},
		"only rank 0 prints":                  {{200, but(busy, steps, 1, 2, 3, 4, 5, 6, 7)}},
		"a program that only sleeps":          {{1000, sleeps}},
		"a rank that is idle all along":       {{1000, but(steps, sleeps, 0)}},
		"a rank waits for its standard input": {{20, steps}, {1000, func(p *job.Pulse) { sleeps(p); p.Stdin = p.Rank == 0 }}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGang(8)
			for i, part := range c {
				if h, n := g.until(part.seconds, part.does); h != nil {
					t.Fatalf("in part %d after %d s: %+v", i, n, h)
				}
			}
		})
	}
}

// TestSuspended: the time in which the pulses of a host do not arrive, or in which gangrun does not run, does
// not count.
func TestSuspended(t *testing.T) {
	g := newGang(8)
	g.until(20, steps)
	g.frozen["h2"] = true
	if h, n := g.until(300, works); h != nil {
		t.Fatalf("a host is suspended, and the others hang after %d s: %+v", n, h)
	}
	g.frozen["h2"] = false
	g.until(5, steps)
	g.now = g.now.Add(time.Hour) // all of it
	if h, n := g.until(5, works); h != nil {
		t.Fatalf("everything was suspended, and hangs after %d s: %+v", n, h)
	}
}

func TestInit(t *testing.T) {
	g := newGang(4)
	for i := range g.ranks {
		if i != 2 {
			g.ranks[i].Phase = job.PhaseInit
		}
	}
	h, n := g.until(100, works)
	if h == nil || h.Stage != job.HangInit || !slices.Equal(h.Ranks, []int{2}) {
		t.Fatalf("after %d s got %+v, want rank 2, which never called MPI_Init", n, h)
	}
}

// TestStepsEndInit: ranks that make steps have left MPI_Init, even if their MPI library has not reported it.
func TestStepsEndInit(t *testing.T) {
	g := newGang(4)
	for i := range g.ranks {
		g.ranks[i].Phase = job.PhaseInit
	}
	g.until(30, steps)
	h, n := g.until(100, but(works, sleeps, 2))
	if h == nil || h.Stage != job.HangStep || n > 13 {
		t.Errorf("after %d s got %+v", n, h)
	}
}

func TestOff(t *testing.T) {
	g := newGang(2)
	g.watch = New(0, Learnt{})
	g.until(20, steps)
	if h, _ := g.until(1000, stops); h != nil {
		t.Errorf("the watch is off, and found %+v", h)
	}
}

// TestEndIsNoGap: the end of a gang that hangs is no progress, and so does not make the next attempt more
// patient.
func TestEndIsNoGap(t *testing.T) {
	g := newGang(4)
	g.until(20, steps)
	if h, _ := g.until(60, works); h == nil {
		t.Fatal("no hang")
	}
	for rank := range 4 {
		g.watch.Exit(rank)
	}
	if l := g.watch.Learnt(); l.Longest > 2*time.Second {
		t.Errorf("learnt %+v of a hang", l)
	}
}

// TestLearnt: an attempt that follows another one knows how long its evaluations take.
func TestLearnt(t *testing.T) {
	g := newGang(2)
	g.until(20, steps)
	g.until(9, works)
	g.until(3, steps)
	learnt := g.watch.Learnt()
	if learnt.Longest != 10*time.Second || learnt.Start != 0 {
		t.Errorf("learnt %+v, want a gap of 10 s", learnt)
	}
	next := newGang(2)
	next.watch = New(timeout, learnt)
	next.until(20, steps)
	if h, n := next.until(49, works); h != nil {
		t.Errorf("hung after %d s: %+v", n, h)
	}
	if h, n := next.until(10, works); h == nil {
		t.Errorf("no hang after %d s more", n)
	}
}
