package saves

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// dir simulates a checkpoint directory and the agent that follows it.
type dir struct {
	t        *testing.T
	now      time.Time
	files    map[string]Found
	why      map[string]string // the results of verifications
	free     int64
	follower *Follower
	told     []job.SaveReport
}

func newDir(t *testing.T, before ...Found) *dir {
	d := &dir{t: t, now: start, files: map[string]Found{}, why: map[string]string{}, free: -1}
	for _, f := range before {
		d.files[f.Path] = f
	}
	d.follower = New(start, d.found())
	return d
}

func (d *dir) found() (all []Found) {
	for _, f := range d.files {
		all = append(all, f)
	}
	return all
}

// write writes a file of a step.
func (d *dir) write(name string, step, bytes int64) {
	old, known := d.files["/c/"+name]
	born := d.now
	if known {
		born = old.Born
	}
	kind := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, name)
	d.files["/c/"+name] = Found{Path: "/c/" + name, Step: step, Kind: kind, Bytes: bytes, Files: 1, Time: d.now, Born: born, Unfinished: strings.HasSuffix(name, ".tmp")}
}

// pass lets time pass. There is a look and a verification every second.
func (d *dir) pass(span time.Duration) {
	for end := d.now.Add(span); d.now.Before(end); {
		d.now = d.now.Add(min(time.Second, end.Sub(d.now)))
		d.tell(d.follower.Look(Look{Now: d.now, Noticed: d.now, Found: d.found(), Free: d.free}))
		if key, parts := d.follower.Due(d.now, Quiet); key != "" {
			d.verify(key, parts)
		}
	}
}

func (d *dir) verify(key string, parts []Found) {
	var results []Checked
	for _, p := range parts {
		results = append(results, Checked{Path: p.Path, Format: "torch", Why: d.why[p.Path]})
	}
	d.tell(d.follower.Verified(d.now, key, parts, results))
}

func (d *dir) tell(reports []job.SaveReport) { d.told = append(d.told, reports...) }

// save writes a whole checkpoint within a time.
func (d *dir) save(name string, step, bytes int64, within time.Duration) {
	before := d.why["/c/"+name]
	d.why["/c/"+name] = "truncated"
	d.write(name, step, bytes/2)
	d.pass(within)
	d.why["/c/"+name] = before
	d.write(name, step, bytes)
	d.pass(4 * time.Second)
}

// saves writes n checkpoints, one every 10 minutes.
func (d *dir) saves(n int) {
	for i := range n {
		step := int64(i+1) * 100
		d.save(fmt.Sprintf("ckpt-%d.pt", step), step, 100*mib, 3*time.Second)
		d.pass(10*time.Minute - 7*time.Second)
	}
}

// troubles returns the texts of the reports, except those about complete checkpoints.
func (d *dir) troubles() (all []string) {
	for _, r := range d.told {
		if r.State != job.SaveComplete {
			all = append(all, string(r.State)+" "+r.Path)
		}
	}
	return all
}

func (d *dir) good() (n int) {
	for _, r := range d.told {
		if r.Good() {
			n++
		}
	}
	return n
}
