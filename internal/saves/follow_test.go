package saves

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

const mib = 1 << 20

func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(d *dir)
		good int
		want string // the troubles
	}{
		"nothing":       {func(d *dir) { d.pass(time.Hour) }, 0, ""},
		"regular saves": {func(d *dir) { d.saves(8) }, 8, ""},
		"slowly written": {func(d *dir) {
			for i := range int64(40) {
				d.write("ckpt-1.pt", 1, i*mib)
				d.pass(time.Second)
			}
			d.pass(5 * time.Second)
		}, 1, "writing /c/ckpt-1.pt"},
		"a writer that pauses": {func(d *dir) {
			d.write("ckpt-1.pt", 1, mib)
			d.why["/c/ckpt-1.pt"] = "truncated"
			d.pass(30 * time.Second)
			d.write("ckpt-1.pt", 1, 2*mib)
			delete(d.why, "/c/ckpt-1.pt")
			d.pass(5 * time.Second)
		}, 1, "writing /c/ckpt-1.pt"},
		"a writer that has died": {func(d *dir) {
			d.write("ckpt-1.pt", 1, mib)
			d.why["/c/ckpt-1.pt"] = "truncated"
			d.pass(5 * time.Minute)
		}, 0, "broken /c/ckpt-1.pt"},
		"broken, and the next one is good": {func(d *dir) {
			d.why["/c/ckpt-1.pt"] = "truncated"
			d.save("ckpt-1.pt", 1, mib, 0)
			d.save("ckpt-2.pt", 2, mib, time.Second)
			d.pass(10 * time.Second)
		}, 1, "broken /c/ckpt-1.pt"},
		"a temporary name that is renamed": {func(d *dir) {
			d.write("ckpt-1.pt.tmp", 1, mib)
			d.pass(5 * time.Second)
			f := d.files["/c/ckpt-1.pt.tmp"]
			delete(d.files, f.Path)
			f.Path, f.Unfinished = "/c/ckpt-1.pt", false
			d.files[f.Path] = f
			d.pass(4 * time.Second)
			if r := d.told[0]; r.Begun != start || r.Write != 0 {
				d.t.Errorf("begun %v, written in %v", r.Begun, r.Write)
			}
		}, 1, ""},
		"a part that still has a temporary name": {func(d *dir) {
			for step := range int64(2) {
				d.write(fmt.Sprintf("ckpt-%d-rank0.pt", step), step, mib)
				name := fmt.Sprintf("ckpt-%d-rank1.pt.tmp", step)
				for i := range int64(6) {
					d.write(name, step, i*mib)
					d.pass(time.Second)
				}
				f := d.files["/c/"+name]
				delete(d.files, f.Path)
				f.Path, f.Unfinished = strings.TrimSuffix(f.Path, ".tmp"), false
				d.files[f.Path] = f
				d.pass(4 * time.Second)
				if r := d.told[len(d.told)-1]; len(d.told) != int(step)+1 || r.Files != 2 {
					d.t.Errorf("%+v", d.told)
				}
			}
		}, 2, ""},
		"a temporary file that stays": {func(d *dir) {
			d.write("ckpt-1.pt.tmp", 1, mib)
			d.pass(30 * time.Minute)
			if d.follower.Busy(d.now) {
				d.t.Error("it is busy for ever")
			}
		}, 0, ""},
		"one name, again and again": {func(d *dir) {
			for range 6 {
				d.save("last.pt", -1, mib, time.Second)
				d.pass(time.Minute)
			}
		}, 6, ""},
		"shards of ranks": {func(d *dir) {
			for step := range int64(3) {
				for rank := range 4 {
					d.write(fmt.Sprintf("shard-%d-of-step_%d.pt", rank, step), step, mib)
					d.pass(time.Second)
				}
				d.pass(2 * time.Minute)
			}
			if r := d.told[2]; r.Files != 4 || r.Bytes != 4*mib || r.Write != job.Duration(3*time.Second) {
				d.t.Errorf("%+v", r)
			}
		}, 3, ""},
		"a shard is missing": {func(d *dir) {
			for step := range int64(3) {
				for rank := range 4 - int(step)/2 {
					d.write(fmt.Sprintf("shard-%d-of-step_%d.pt", rank, step), step, mib)
				}
				d.pass(2 * time.Minute)
			}
		}, 2, "broken /c/shard-0-of-step_2.pt"},
		"a shard is broken": {func(d *dir) {
			d.why["/c/b-1.pt"] = "truncated"
			d.write("a-1.pt", 1, mib)
			d.write("b-1.pt", 1, mib)
			d.pass(2 * time.Minute)
			if r := d.told[0]; r.Why != "b-1.pt: truncated" {
				d.t.Errorf("why %q", r.Why)
			}
		}, 0, "broken /c/a-1.pt"},
		"overdue":                      {func(d *dir) { d.saves(5); d.pass(3 * time.Hour) }, 5, "overdue /c/ckpt-500.pt"},
		"overdue, and again":           {func(d *dir) { d.saves(5); d.pass(time.Hour); d.saves(1); d.pass(6 * time.Hour) }, 6, "overdue /c/ckpt-500.pt, overdue /c/ckpt-100.pt"},
		"two saves say nothing":        {func(d *dir) { d.saves(2); d.pass(10 * time.Hour) }, 2, ""},
		"one early save, then each 1h": {func(d *dir) { d.save("ckpt-0.pt", 0, mib, 0); d.save("ckpt-1.pt", 1, mib, 0); d.pass(10 * time.Hour) }, 2, ""},
		"two files each time, one save": {func(d *dir) {
			d.write("model.pt", -1, mib)
			d.write("optimizer.pt", -1, mib)
			d.pass(10 * time.Hour)
		}, 2, ""},
		"shrinking": {func(d *dir) {
			d.saves(3)
			d.save("ckpt-900.pt", 900, 40*mib, time.Second)
		}, 4, "shrinking /c/ckpt-900.pt"},
		"shrinking, and again": {func(d *dir) {
			d.saves(3)
			d.save("ckpt-900.pt", 900, 40*mib, time.Second)
			d.save("ckpt-950.pt", 950, 40*mib, time.Second)
			for _, r := range d.told[3:] { // the report before these is about a small checkpoint, too
				if r.Why != "it has 40 MiB, and ckpt-300.pt had 100 MiB" {
					d.t.Errorf("why %q", r.Why)
				}
			}
		}, 5, "shrinking /c/ckpt-900.pt, shrinking /c/ckpt-950.pt"},
		"a later step is bigger": {func(d *dir) {
			for i := range int64(3) {
				d.save(fmt.Sprintf("ckpt-%d.pt", 300+i), 300+i, 100*mib, time.Second)
			}
			d.save("ckpt-200.pt", 200, 40*mib, time.Second)
		}, 4, ""},
		"another kind is small": {func(d *dir) {
			d.saves(3)
			d.save("ema-900.pt", 900, 4*mib, time.Second)
		}, 4, ""},
		"a little smaller": {func(d *dir) {
			d.saves(3)
			d.save("ckpt-900.pt", 900, 60*mib, time.Second)
		}, 4, ""},
		"no room, all are kept": {func(d *dir) {
			for i := range int64(4) {
				d.free = 450*mib - i*100*mib
				d.save(fmt.Sprintf("ckpt-%d.pt", i), i, 100*mib, time.Second)
				d.pass(time.Minute)
			}
		}, 4, "disk ckpt-3.pt"},
		"old ones are removed": {func(d *dir) {
			d.free = 250 * mib
			for i := range int64(9) {
				d.save(fmt.Sprintf("ckpt-%d.pt", i), i, 100*mib, time.Second)
				if i >= 1 {
					delete(d.files, fmt.Sprintf("/c/ckpt-%d.pt", i-1))
					d.free = 150 * mib
				}
				d.pass(time.Minute)
			}
		}, 9, ""},
		"written over the last one": {func(d *dir) {
			d.free = 10 * mib
			for range 9 {
				d.save("last.pt", -1, 100*mib, time.Second)
				d.pass(time.Minute)
			}
		}, 9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDir(t)
			c.do(d)
			if got := strings.Join(d.troubles(), ", "); got != c.want || d.good() != c.good {
				t.Errorf("%d good, %q; want %d, %q", d.good(), got, c.good, c.want)
			}
			for _, r := range d.told {
				if r.Write < 0 || Text(r) == "" || r.Problem() && Hint(r) == "" {
					t.Errorf("%+v: %s, %s", r, Text(r), Hint(r))
				}
			}
		})
	}
}

// TestShortlyAfter: checkpoints that follow each other within the time of a look and a verification are
// measured like others. A change of one is not the beginning of the next, and each counts.
func TestShortlyAfter(t *testing.T) {
	d := newDir(t)
	var noticed time.Time
	for tick := range 100 * 20 { // 100 s in steps of 50 ms: a file each second for 5 s, a look each second
		d.now = start.Add(time.Duration(tick) * 50 * time.Millisecond)
		if tick%20 == 16 && tick < 100 {
			name, at := fmt.Sprintf("ckpt-%d.pt", tick/20), d.now
			d.write(name, int64(tick/20), mib)
			f := d.files["/c/"+name]
			f.Time = at.Add(5 * time.Millisecond)
			d.files[f.Path] = f
		}
		if tick%20 == 0 && tick <= 100 || tick%20 == 16 && tick < 100 { // changes that belong to no checkpoint
			if noticed.IsZero() {
				noticed = d.now
			}
		}
		if tick%20 == 19 {
			l := Look{Now: d.now, Noticed: noticed, Found: d.found(), Free: -1}
			if noticed.IsZero() {
				l.Noticed = d.now
			}
			noticed = time.Time{}
			d.tell(d.follower.Look(l))
		}
		if key, parts := d.follower.Due(d.now, Quiet); key != "" {
			d.verify(key, parts)
		}
	}
	if d.good() != 5 || len(d.told) != 6 || d.told[5].State != job.SaveOverdue || d.told[5].Usual != job.Duration(time.Second) {
		t.Fatalf("%+v", d.told)
	}
	var s Summary
	for _, r := range d.told {
		if r.Good() && (r.Write != job.Duration(5*time.Millisecond) || r.Begun != start.Add(time.Duration(r.Step)*time.Second+800*time.Millisecond)) {
			t.Errorf("step %d: begun %v, written in %v", r.Step, r.Begun.Sub(start), r.Write)
		}
		s.Add(r)
	}
	if s.Every != job.Duration(time.Second) || s.Write != job.Duration(5*time.Millisecond) {
		t.Errorf("each %v, written in %v", s.Every, s.Write)
	}
}

// TestBefore: a checkpoint that was there before is not reported until it is written again.
func TestBefore(t *testing.T) {
	d := newDir(t, Found{Path: "/c/ckpt-1.pt", Step: 1, Bytes: mib, Files: 1, Time: start.Add(-time.Hour)})
	d.pass(time.Minute)
	if len(d.told) > 0 {
		t.Fatalf("%+v", d.told)
	}
	d.save("ckpt-1.pt", 1, mib, time.Second)
	if d.good() != 1 {
		t.Errorf("%+v", d.told)
	}
}

// TestClose checks what is reported about a checkpoint that is not complete when the gang ends.
func TestClose(t *testing.T) {
	for quietFor, want := range map[time.Duration]int{time.Second: 0, 10 * time.Second: 1} {
		d := newDir(t)
		d.why["/c/ckpt-1.pt"] = "truncated"
		d.write("ckpt-1.pt", 1, mib)
		d.pass(quietFor)
		for {
			key, parts := d.follower.CloseDue(d.now)
			if key == "" {
				break
			}
			d.verify(key, parts)
		}
		d.tell(d.follower.Close(d.now))
		if len(d.told) != want {
			t.Errorf("quiet for %v: %+v", quietFor, d.told)
		}
	}
}

// TestServerClock: the clock of a file server does not matter.
func TestServerClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		d := newDir(t)
		d.pass(20 * time.Minute)
		d.write("ckpt-1.pt", 1, mib)
		f := d.files["/c/ckpt-1.pt"]
		f.Time, f.Born = f.Time.Add(off), f.Born.Add(off)
		d.files[f.Path] = f
		d.pass(5 * time.Second)
		r := d.told[0]
		if w := time.Duration(r.Write); w < 0 || w > 2*time.Second || r.Begun.Before(start.Add(19*time.Minute)) || r.Begun.After(d.now) {
			t.Errorf("%v: begun %v, written in %v", off, r.Begun, w)
		}
	}
}

// TestBounded: neither a directory with many files nor a long job takes much memory.
func TestBounded(t *testing.T) {
	d := newDir(t)
	for i := range int64(2 * maxSaves) {
		d.write(fmt.Sprintf("ckpt-%d.pt", i), i, mib)
	}
	d.follower.Look(Look{Now: d.now, Noticed: d.now, Found: d.found(), Free: -1})
	if len(d.follower.saves) > maxSaves {
		t.Errorf("%d are followed", len(d.follower.saves))
	}
	d = newDir(t)
	var s Summary
	for i := range int64(3 * maxPast) {
		d.save("last.pt", -1, mib, 0)
		d.pass(time.Minute)
		s.Add(d.told[i])
	}
	if len(d.follower.past) > maxPast || len(s.Newest) > maxNewest || s.Good != 3*maxPast {
		t.Errorf("%d are remembered, %d are reported, %d were good", len(d.follower.past), len(s.Newest), s.Good)
	}
}

func TestSummary(t *testing.T) {
	var s Summary
	if s.Line() != "" || s.Age(start) != "" {
		t.Errorf("%q, %q", s.Line(), s.Age(start))
	}
	stall := job.Duration(2 * time.Second)
	for i := range 12 {
		r := job.SaveReport{State: job.SaveComplete, Begun: start.Add(time.Duration(i) * 20 * time.Minute), Write: job.Duration(4100 * time.Millisecond), Stall: &stall}
		r.Step, r.Bytes = int64(i+1)*100, 1200*mib
		s.Add(r)
	}
	s.Add(job.SaveReport{State: job.SaveBroken})
	s.Add(job.SaveReport{State: job.SaveWriting})
	if want := "12 good, 1 broken, newest step 1200 at 12:40:00; 1.2 GiB each, written in 4.1 s, training stands still for 2.0 s"; s.Line() != want {
		t.Errorf("got  %s\nwant %s", s.Line(), want)
	}
	if got, want := s.Age(start.Add(220*time.Minute+3*time.Minute+4100*time.Millisecond)), "step 1200, 3 min ago"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Every != job.Duration(20*time.Minute) || len(s.Newest) != 13 || slices.ContainsFunc(s.Newest, func(r job.SaveReport) bool { return r.State == job.SaveWriting }) {
		t.Errorf("%+v", s)
	}
}

// TestOrder: the order in which checkpoints are verified does not matter.
func TestOrder(t *testing.T) {
	d := newDir(t)
	for _, step := range []int64{60, 80} {
		d.write(fmt.Sprintf("ckpt-%d.pt", step), step, mib)
		d.now = d.now.Add(time.Second)
		d.tell(d.follower.Look(Look{Now: d.now, Noticed: d.now, Found: d.found(), Free: -1}))
		d.now = d.now.Add(10 * time.Second)
	}
	var s Summary
	for {
		key, parts := d.follower.CloseDue(d.now)
		if key == "" {
			break
		}
		d.verify(key, parts)
	}
	if d.good() != 2 || d.told[0].Step != 80 {
		t.Fatalf("%+v; want the newest first", d.told)
	}
	for _, r := range d.told {
		s.Add(r)
	}
	if s.Last().Step != 80 || s.Every != job.Duration(11*time.Second) || d.follower.past[1].name != "ckpt-80.pt" {
		t.Errorf("%+v, %+v", s, d.follower.past)
	}
}
