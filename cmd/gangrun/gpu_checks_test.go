package main_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/topology/lease"
)

// check checks what is left when every gang has ended.
func (r *gpuRound) check(figures *gpuFigures) {
	t := r.t
	for _, g := range r.gangs {
		if err := g.check(); err != nil {
			t.Errorf("%s: %v", g.name, err)
		}
		if text := g.said.String(); strings.Contains(text, "panic:") || strings.Contains(text, "fatal error:") {
			t.Errorf("%s panicked", g.name)
		}
		figures.gangs++
		switch {
		case g.kill == nil:
		case g.kill.hit:
			figures.kills[g.kill.String()]++
		default:
			figures.missed++
		}
	}
	if doubles := r.file("doubles"); doubles != "" {
		t.Errorf("ranks share GPUs:\n%s", doubles)
	}
	r.nothingRuns()
	r.nothingLies()
	r.freed()
	for line := range strings.Lines(r.file("overlaps")) {
		ms, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		took := time.Duration(ms) * time.Millisecond
		if figures.overlaps++; took > exitLimit {
			t.Errorf("ranks of a killed controller were on the GPU of others for %s", took)
		}
		figures.overlap = max(figures.overlap, took)
	}
	r.journals(figures)
	r.watch.mu.Lock()
	defer r.watch.mu.Unlock()
	for _, fault := range r.watch.faults {
		t.Error(fault)
	}
	figures.rounds++
	figures.looks += r.watch.looks
	figures.idled = max(figures.idled, r.watch.idled)
}

// nothingRuns waits until no process of any gang is left.
func (r *gpuRound) nothingRuns() {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for none := 0; none < 2; <-tick.C {
		left := r.marked()
		maps.Copy(left[ownMark], left[jobMark])
		if none++; len(left[ownMark]) > 0 {
			none = 0
		}
		if time.Since(began) > exitLimit {
			r.t.Fatalf("%s after the last gang's end there are still %v", exitLimit, left[ownMark])
		}
	}
}

// nothingLies checks the directories that gangrun has made for the ranks. If a controller was killed, the directory of
// its run is left, but not those of its hosts. All other directories must be gone.
func (r *gpuRound) nothingLies() {
	runs, err := filepath.Glob(filepath.Join(r.dir, "*/gangrun-*/*"))
	hosts, hostsErr := filepath.Glob(filepath.Join(r.dir, "*/gangrun-*/*/*"))
	if err := errors.Join(err, hostsErr); err != nil {
		r.t.Fatal(err)
	}
	if len(hosts) > 0 {
		r.t.Errorf("of hosts are left: %q", hosts)
	}
	for _, run := range runs {
		if !slices.ContainsFunc(r.gangs, func(g *gpuGang) bool {
			return g.lost() && strings.Contains(filepath.Base(run), "-"+g.name+"-")
		}) {
			r.t.Errorf("left is %s", run)
		}
	}
}

// freed checks the leases. No gang may hold a GPU or wait for one, and another gang must get all of them.
func (r *gpuRound) freed() {
	t := r.t
	r.free(0, func(l lease.Lease) bool { // the record of a killed gang may be left, even a part of one
		return l.State == lease.StateDead && slices.ContainsFunc(r.gangs, func(g *gpuGang) bool {
			return g.kill != nil && (l.Owner == nil || strings.Contains(l.Owner.Run, "-"+g.name+"-"))
		})
	})
	files, wrong := lockFiles(r.watch.dir)
	for _, text := range wrong {
		t.Errorf("in the directory of leases %s", text)
	}
	r.watch.same(files)
	for name := range files {
		f, err := os.Open(filepath.Join(r.watch.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Errorf("the lock of %s: %v", name, err)
		}
		f.Close()
	}
	total := 0
	for _, gpus := range gpuHosts {
		total += gpus
	}
	all := r.as(stranger, "run", "--loopback", strconv.Itoa(len(gpuHosts)), "--inventory", filepath.Join(r.dir, "lab.yaml"), "-n", strconv.Itoa(total),
		"--preflight", "off", "--timeout", patience.String(), "--", "true")
	if out, err := all.CombinedOutput(); err != nil {
		t.Errorf("a gang that needs all GPUs: %v\n%s", err, out)
	}
	r.free(stranger, func(lease.Lease) bool { return false })
}

// free lists the leases as a user. All GPUs must be free, except those for which dead returns true.
func (r *gpuRound) free(uid int, dead func(lease.Lease) bool) {
	t := r.t
	t.Helper()
	var listings []lease.Listing
	out, err := r.as(uid, "leases", "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(out, &listings)
	}
	if err != nil || len(listings) != len(gpuHosts) {
		t.Fatalf("leases: %v\n%s", err, out)
	}
	for _, l := range listings {
		if len(l.Waiting) > 0 || len(l.Warnings) > 0 {
			t.Errorf("on %s are left: %+v, %q", l.Host, l.Waiting, l.Warnings)
		}
		for _, gpu := range l.Leases {
			if (gpu.State != lease.StateFree || gpu.Warning != "") && !dead(gpu) {
				t.Errorf("on %s is left: %+v", l.Host, gpu)
			}
		}
	}
}

// journals checks with the journals that no GPU was placed for two gangs at the same time. A gang has its GPUs at
// least from "placed" to "outcome". If its controller was killed, it has them until then.
func (r *gpuRound) journals(figures *gpuFigures) {
	t := r.t
	type use struct {
		gang     string
		from, to time.Time
	}
	uses := map[string][]use{}
	byPID := map[int]*gpuGang{}
	for _, g := range r.gangs {
		byPID[g.cmd.Process.Pid] = g
	}
	paths, err := filepath.Glob(filepath.Join(r.dir, "*/runs/runs/*/journal.jsonl"))
	if err != nil || len(paths) < len(r.gangs)/2 {
		t.Fatalf("journals %q, %v", paths, err)
	}
	placed := 0
	for _, path := range paths {
		events, skipped, err := journal.Replay(path)
		if err != nil || skipped > 0 {
			t.Errorf("%s: %d lines cannot be read: %v", path, skipped, err)
		}
		var g *gpuGang
		var waits time.Time
		var now use
		var gpus []string
		for _, e := range events {
			switch {
			case e.Kind == job.KindCreated && e.Controller != nil:
				g = byPID[e.Controller.PID]
			case e.Kind == job.KindState && e.State == job.StateWaiting:
				waits = e.Time
			case e.Kind == job.KindPlaced && g != nil:
				placed++
				figures.longest = max(figures.longest, e.Time.Sub(waits))
				now.gang, now.from = g.name, e.Time
				for _, rank := range e.Placement.Ranks {
					for _, gpu := range rank.Devices {
						gpus = append(gpus, rank.Host+" "+gpu)
					}
				}
				if want := g.need.ranks * g.need.gpus; len(gpus) != want {
					t.Errorf("%s got %q, want %d GPUs", g.name, gpus, want)
				}
			case e.Kind == job.KindOutcome:
				now.to = e.Time
			}
		}
		// The GPUs of a killed agent are free before the journal has the outcome of the attempt. The locks of the
		// ranks themselves show whether a rank still used such a GPU.
		if g != nil && g.kill != nil && (now.to.IsZero() || g.kill.hit && (g.kill.victim == "agent" || g.kill.victim == "watchdog") && g.kill.at.Before(now.to)) {
			now.to = g.kill.at
		}
		for _, gpu := range gpus {
			uses[gpu] = append(uses[gpu], now)
		}
	}
	if placed == 0 {
		t.Error("no journal tells of a placed gang")
	}
	for gpu, all := range uses {
		slices.SortFunc(all, func(a, b use) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
		for i := 1; i < len(all); i++ {
			if before, after := all[i-1], all[i]; after.from.Before(before.to) {
				t.Errorf("%s was placed for %s at %s, when %s had it until %s", gpu, after.gang, after.from, before.gang, before.to)
			}
		}
	}
}
