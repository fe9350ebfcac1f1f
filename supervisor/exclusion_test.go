package supervisor

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestWanted(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration, hosts ...string) exclusion {
		return exclusion{job.Excluded{Hosts: hosts}, now.Add(-d)}
	}
	gpu := func(d time.Duration) exclusion {
		return exclusion{job.Excluded{Devices: []string{"GPU-1"}}, now.Add(-d)}
	}
	hosts := func(names ...string) job.Excluded { return job.Excluded{Hosts: names} }
	for name, c := range map[string]struct {
		exclusions []exclusion
		out        job.Excluded
		over       job.Excluded
	}{
		"none":                {nil, job.Excluded{}, job.Excluded{}},
		"a host":              {[]exclusion{ago(time.Minute, "h2")}, hosts("h2"), job.Excluded{}},
		"a cool-down is over": {[]exclusion{ago(CoolDown, "h2"), ago(time.Minute, "h3")}, hosts("h3"), hosts("h2")},
		"and began anew":      {[]exclusion{ago(CoolDown, "h2"), ago(time.Minute, "h2")}, hosts("h2"), job.Excluded{}},
		"twice over":          {[]exclusion{ago(2*CoolDown, "h3", "h2"), ago(CoolDown, "h2")}, job.Excluded{}, hosts("h2", "h3")},
		"a GPU":               {[]exclusion{gpu(CoolDown - 1)}, job.Excluded{Devices: []string{"GPU-1"}}, job.Excluded{}},
		"a GPU's is over":     {[]exclusion{gpu(CoolDown)}, job.Excluded{}, job.Excluded{Devices: []string{"GPU-1"}}},
	} {
		if out, over := inForce(c.exclusions, now); !alike(out, c.out) || !alike(over, c.over) {
			t.Errorf("%s: without %+v, over for %+v", name, out, over)
		}
	}
}

// alike reports whether a and b exclude the same. A nil list equals an empty one.
func alike(a, b job.Excluded) bool {
	return slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.Devices, b.Devices)
}

func TestForget(t *testing.T) {
	since := time.Now()
	got := forget([]exclusion{
		{job.Excluded{Hosts: []string{"h1", "h2"}, Devices: []string{"GPU-1"}}, since}, {job.Excluded{Hosts: []string{"h2"}}, since},
	}, job.Excluded{Hosts: []string{"h2"}, Devices: []string{"GPU-1"}})
	if len(got) != 1 || !alike(got[0].Excluded, job.Excluded{Hosts: []string{"h1"}}) || !got[0].since.Equal(since) {
		t.Errorf("%+v", got)
	}
}

func TestGoingBack(t *testing.T) {
	hosts := func(names ...string) job.Excluded { return job.Excluded{Hosts: names} }
	for name, c := range map[string]struct {
		out         job.Excluded
		silent      []string
		waited      time.Duration
		used, still job.Excluded
		vain        bool
	}{
		"all answer":             {hosts("h2", "h3"), nil, 0, hosts("h2", "h3"), job.Excluded{}, true},
		"one answers":            {hosts("h2", "h3"), []string{"h3"}, 0, hosts("h2"), hosts("h3"), false},
		"none answers":           {hosts("h2"), []string{"h2"}, CoolDown - 1, job.Excluded{}, hosts("h2"), false},
		"none answers, too long": {hosts("h2"), []string{"h2"}, CoolDown, job.Excluded{}, hosts("h2"), true},
		"GPUs are there":         {job.Excluded{Hosts: []string{"h2"}, Devices: []string{"GPU-1"}}, []string{"h2"}, 0, job.Excluded{Devices: []string{"GPU-1"}}, hosts("h2"), false},
	} {
		silent := map[string]string{}
		for _, h := range c.silent {
			silent[h] = "no answer"
		}
		if used, still, vain := goingBack(c.out, silent, c.waited); !alike(used, c.used) || !alike(still, c.still) || vain != c.vain {
			t.Errorf("%s: uses %+v, still without %+v, %v", name, used, still, vain)
		}
	}
}

// fakeLooker has hosts that answer from a given time on. A look takes 10 s if a host does not answer.
type fakeLooker struct {
	begun  time.Time
	mended map[string]time.Duration // after the first look; absent is at once
	looks  [][]string
}

func (f *fakeLooker) Unfit(ctx context.Context, hosts []string) map[string]string {
	if f.begun.IsZero() {
		f.begun = time.Now()
	}
	f.looks = append(f.looks, hosts)
	silent := map[string]string{}
	for _, h := range hosts {
		if time.Since(f.begun) < f.mended[h] {
			silent[h] = h + " says nothing"
		}
	}
	if len(silent) > 0 {
		pause(ctx, 10*time.Second)
	}
	return silent
}

// roomy places a gang only if at most that many hosts are excluded.
type roomy struct {
	*fakePlacer
	most int
}

func (r roomy) Place(ctx context.Context, spec job.Spec, not job.Excluded, emit func(job.Event)) (Lease, error) {
	r.full = len(not.Hosts) > r.most
	return r.fakePlacer.Place(ctx, spec, not, emit)
}

// TestNoRoomWithout: if a gang does not fit without a host that was lost, gangrun checks whether the host
// answers before it spends an attempt on it.
func TestNoRoomWithout(t *testing.T) {
	lost := func(rank int) gang {
		g := dies(job.Exit{Rank: rank, Status: job.Lost}, job.HostLost, -1)
		g.life = time.Second
		return g
	}
	const h1, h2 = 0, 1
	waiting := func(names, which string) string {
		return "no room without " + names + ", which " + which + ", 10 minutes at most"
	}
	it := "cannot be used yet: waiting for it"
	for name, c := range map[string]struct {
		gangs  []gang
		most   int // hosts that there is room without
		mended map[string]time.Duration
		set    func(*world)
		state  job.State
		code   int
		reason string
		nots   [][]string
		notes  []string
	}{
		"it answers": {
			gangs: []gang{lost(h2), works()}, state: job.StateSucceeded, nots: [][]string{nil, {"h2"}, nil},
			notes: []string{"there is no place without h2; placing the gang on it again"},
		},
		"it answers after a while": {
			gangs: []gang{lost(h2), works()}, mended: map[string]time.Duration{"h2": 5 * time.Minute}, state: job.StateSucceeded,
			nots:  [][]string{nil, {"h2"}, nil},
			notes: []string{waiting("h2", it) + " (h2 says nothing)", "h2 can be used again: placing the gang there"},
		},
		"it never answers": {
			gangs: []gang{lost(h2)}, mended: map[string]time.Duration{"h2": time.Hour}, state: job.StateFailed, code: 75,
			reason: "no place for another attempt: no other host; waited 10 minutes for h2 (h2 says nothing)",
			nots:   [][]string{nil, {"h2"}}, notes: []string{waiting("h2", it)},
		},
		"one of two answers, which is enough": {
			gangs: []gang{lost(h1), lost(h2), works()}, most: 1, mended: map[string]time.Duration{"h2": time.Hour}, state: job.StateSucceeded,
			nots:  [][]string{nil, {"h1"}, {"h1", "h2"}, {"h2"}},
			notes: []string{"there is no place without h1; placing the gang on it again"},
		},
		"one of two answers, which is not enough": {
			gangs: []gang{lost(h1), lost(h2), works()}, most: 0, mended: map[string]time.Duration{"h2": 40 * time.Second}, state: job.StateSucceeded,
			nots:  [][]string{nil, {"h1"}, nil, {"h2"}, nil},
			notes: []string{waiting("h2", it), "h2 can be used again: placing the gang there"},
		},
		"neither answers": {
			gangs: []gang{lost(h1), lost(h2), works()}, most: 1, mended: map[string]time.Duration{"h1": 2 * time.Minute, "h2": time.Minute}, state: job.StateSucceeded,
			nots: [][]string{nil, {"h1"}, {"h1", "h2"}, {"h1"}},
			notes: []string{waiting("h1, h2", "cannot be used yet: waiting for them") + " (h1 says nothing; h2 says nothing)",
				"h2 can be used again: placing the gang there"},
		},
		"cancelled meanwhile": {
			gangs: []gang{lost(h2)}, mended: map[string]time.Duration{"h2": time.Hour}, set: func(w *world) { w.cancelAfter = time.Minute },
			state: job.StateCancelled, code: 130, reason: "cancelled by SIGINT while waiting for a place",
			nots: [][]string{nil, {"h2"}}, notes: []string{waiting("h2", it)},
		},
		"the time is up meanwhile": {
			gangs: []gang{lost(h2)}, mended: map[string]time.Duration{"h2": time.Hour}, set: func(w *world) { w.spec.Timeout = job.Duration(time.Minute) },
			state: job.StateFailed, code: 124, reason: "the time limit of 1m0s was reached while waiting for a place",
			nots: [][]string{nil, {"h2"}}, notes: []string{waiting("h2", it)},
		},
		"its ranks may still be there: nobody looks": {
			gangs: []gang{func() gang { g := lost(h2); g.left = []job.Unreaped{{Rank: 1, Host: "h2"}}; return g }()},
			state: job.StateFailed, code: 75, reason: "no place for another attempt: no other host; ranks may still be running on h2",
			nots: [][]string{nil, {"h2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.gangs...)
			looker := &fakeLooker{mended: c.mended}
			w.supervisor.Elsewhere, w.supervisor.Looker, w.supervisor.Placer = true, looker, roomy{w.placer, c.most}
			if c.set != nil {
				c.set(w)
			}
			w.run(t)
			if r := w.report; r.State != c.state || *r.ExitCode != c.code || c.reason != "" && r.Reason != c.reason || len(r.Attempts) != len(c.gangs) {
				t.Errorf("%s, %d, %q, %d attempts", r.State, *r.ExitCode, r.Reason, len(r.Attempts))
			}
			var nots [][]string
			for _, not := range w.placer.nots {
				nots = append(nots, slices.Clip(not.Hosts))
			}
			if !reflect.DeepEqual(nots, c.nots) {
				t.Errorf("placed without %q, want %q", nots, c.nots)
			}
			for _, want := range c.notes {
				told := 0
				for _, e := range w.events {
					if e.Kind == job.KindNote && strings.HasPrefix(e.Text, want) {
						told++
					}
				}
				if told != 1 {
					t.Errorf("%q is told %d times: %s", want, told, w.notes())
				}
			}
			if barred := len(c.gangs[0].left) > 0; len(looker.looks) == 0 != barred {
				t.Errorf("looked at %q", looker.looks)
			}
		})
	}
}

// TestLostTogether: if several hosts were lost together, gangrun also excludes those that are not blamed and do
// not answer.
func TestLostTogether(t *testing.T) {
	both := gang{launch: time.Second, life: time.Second, steps: -1, exits: []job.Exit{
		{Rank: 1, Host: "h2", Status: job.Lost, Text: string(job.HostLost)}, {Rank: 0, Host: "h1", Status: job.Lost},
	}}
	stopped := gang{launch: time.Second, life: time.Second, steps: -1, exits: []job.Exit{both.exits[0], {Rank: 0, Host: "h1", Status: job.Lost, Stopped: true}}}
	const note = "leaving out what cannot be used: h1 (h1 says nothing)"
	for name, c := range map[string]struct {
		gang   gang
		mended map[string]time.Duration
		not    []string
		note   int
	}{
		"it answers":          {both, nil, []string{"h2"}, 0},
		"it does not":         {both, map[string]time.Duration{"h1": time.Hour}, []string{"h1", "h2"}, 1},
		"gangrun ended those": {stopped, map[string]time.Duration{"h1": time.Hour}, []string{"h2"}, 0},
	} {
		w := newWorld(t, c.gang, works())
		w.supervisor.Elsewhere, w.supervisor.Looker = true, &fakeLooker{mended: c.mended}
		w.run(t)
		if got := w.placer.nots; w.report.State != job.StateSucceeded || len(got) != 2 || !slices.Equal(got[1].Hosts, c.not) || strings.Count(w.notes(), note) != c.note {
			t.Errorf("%s: %s, placed without %+v, want %q; notes %q", name, w.report.State, got, c.not, w.notes())
		}
	}
}

// TestCoolDownIsOver: a host whose cool-down is over is used again if it answers, and otherwise excluded again.
func TestCoolDownIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		mended time.Duration
		nots   [][]string
	}{
		"it answers":       {0, [][]string{nil, {"h2"}, nil, nil}},
		"it never answers": {time.Hour, [][]string{nil, {"h2"}, {"h2"}, {"h2"}}},
	} {
		lost := dies(job.Exit{Rank: 1, Status: job.Lost}, job.HostLost, -1)
		long, short := dies(exited(0, 7), job.NetworkError, -1), dies(exited(0, 7), job.NetworkError, -1)
		long.life = CoolDown
		w := newWorld(t, lost, long, short, works())
		looker := &fakeLooker{mended: map[string]time.Duration{"h2": c.mended}}
		w.supervisor.Elsewhere, w.supervisor.Looker, w.supervisor.Placer = true, looker, roomy{w.placer, 1}
		w.run(t)
		var nots [][]string
		for _, not := range w.placer.nots {
			nots = append(nots, slices.Clip(not.Hosts))
		}
		if w.report.State != job.StateSucceeded || !reflect.DeepEqual(nots, c.nots) || len(looker.looks) != 1 {
			t.Errorf("%s: %s, placed without %q, want %q; looked at %q", name, w.report.State, nots, c.nots, looker.looks)
		}
	}
}

// TestCoolDownOfGPU: a GPU is used again when its cool-down is over, even if the gang fits without it.
func TestCoolDownOfGPU(t *testing.T) {
	bad, long := dies(exited(0, 1), job.CUDAInit, -1), dies(exited(0, 7), job.NetworkError, -1)
	long.life = CoolDown
	w := newWorld(t, bad, long, works())
	w.run(t)
	var nots [][]string
	for _, not := range w.placer.nots {
		nots = append(nots, slices.Clip(not.Devices))
	}
	const note = "10 minutes have passed without GPU-0: the gang may use it again"
	if w.report.State != job.StateSucceeded || !reflect.DeepEqual(nots, [][]string{nil, {"GPU-0"}, nil}) || strings.Count(w.notes(), note) != 1 {
		t.Errorf("%s, placed without %q; notes %q", w.report.State, nots, w.notes())
	}
}
