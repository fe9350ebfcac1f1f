package main_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// nobodyLeft waits until no process of the run is left on any host. Then no GPU may be held. A GPU whose holder was
// killed counts as free.
func (r *tally) nobodyLeft() {
	t := r.t
	t.Helper()
	limit := time.Now().Add(patience)
	for _, h := range r.bed.Hosts() {
		for left := processes(t, h); len(left) > 0; left = processes(t, h) {
			if time.Now().After(limit) {
				t.Fatalf("left on %s: %q", h.Name(), left)
			}
			time.Sleep(20 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		held, err := h.Exec(ctx, r.gangrun, "leases")
		others, err2 := h.Exec(ctx, "sh", "-c", "find /dev/shm /run/lock -path '*gangrun*' ! -path '*/gangrun.@*'; ls /dev/shm /run/lock | grep -c 'gangrun.@.gpu' || true")
		cancel()
		if err := errors.Join(err, err2); err != nil || regexp.MustCompile(`GPU-\S+ +(held|drain)`).MatchString(held) || strings.Contains(others, "/") {
			t.Errorf("on %s there is left: %s%s %v", h.Name(), held, others, err)
		}
		r.leased = r.leased || strings.TrimSpace(others) != "0"
	}
	if !r.leased {
		t.Error("no GPU was ever held: this tests nothing of leases")
	}
}

// checkCauses checks that a mishap explains the failure of every attempt. If an agent dies just before its controller,
// gangrun cannot know which of the two died first.
func (r *tally) checkCauses(report runreport.Report) {
	for i, a := range report.Attempts {
		if a.Cause == nil {
			if i < len(report.Attempts)-1 {
				r.t.Errorf("attempt %d has failed without a cause: %+v", a.Number, a)
			}
			continue
		}
		if !slices.ContainsFunc(r.all, func(s stroke) bool {
			both := a.Cause.Signature == "controller-gone" && slices.ContainsFunc(r.all, func(s stroke) bool { return s.controller })
			return s.cause == a.Cause.Category && (s.anywhere || both || s.host == a.Cause.Host) && !s.at.After(a.Ended.Add(time.Second))
		}) {
			r.t.Errorf("attempt %d has failed as %s (%s) on %q, which is not what has happened", a.Number, a.Cause.Category, a.Cause.Signature, a.Cause.Host)
		}
	}
}

// checkResult checks the exit code, and what the job has computed.
func (r *tally) checkResult(report runreport.Report, code int) {
	if report.ExitCode == nil || *report.ExitCode != code {
		r.t.Errorf("exit code %d, the report tells %v", code, report.ExitCode)
	}
	if report.State != job.StateSucceeded {
		last := report.Last()
		if report.State != job.StateFailed || code == 0 || code == 70 || last == nil || last.Cause == nil {
			r.t.Errorf("exit code %d, %s without a cause", code, report.State)
		}
		return
	}
	x := make([]uint64, tallyRanks)
	for rank := range x {
		x[rank] = uint64(rank) + 1
	}
	for step := uint64(1); step <= tallySteps; step++ {
		total := uint64(0)
		for rank := range x {
			x[rank] = x[rank]*6364136223846793005 + uint64(rank) + step
			total += x[rank]
		}
		for rank := range x {
			if step%5 == 0 {
				x[rank] ^= total
			}
		}
	}
	for rank, want := range x {
		var got uint64
		data, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("result.%d", rank)))
		if err != nil || json.Unmarshal(data, &got) != nil || got != want {
			r.t.Errorf("rank %d has computed %s, want %d: %v", rank, data, want, err)
		}
	}
	if code != 0 {
		r.t.Errorf("exit code %d of a success", code)
	}
}

// checkStamps checks that no attempt did anything after the next attempt had begun. The only exception is a host that
// was frozen: its ranks may run for a moment when it is thawed.
func (r *tally) checkStamps() {
	data, err := os.ReadFile(filepath.Join(r.dir, "stamps"))
	if err != nil {
		r.t.Fatal(err)
	}
	type stamp struct {
		attempt, rank int
		host          string
		at            float64
		what          string
	}
	var all []stamp
	begun := map[int]float64{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var s stamp
		fields := strings.SplitN(line, " ", 5)
		if len(fields) != 5 {
			r.t.Fatalf("%q among the stamps", line)
		}
		s.host, s.what = fields[2], fields[4]
		s.attempt, err = strconv.Atoi(fields[0])
		rank, err2 := strconv.Atoi(fields[1])
		at, err3 := strconv.ParseFloat(fields[3], 64)
		if err := errors.Join(err, err2, err3); err != nil {
			r.t.Fatalf("%q among the stamps: %v", line, err)
		}
		s.rank, s.at = rank, at
		if first, ok := begun[s.attempt]; !ok || at < first {
			begun[s.attempt] = at
		}
		all = append(all, s)
	}
	for _, s := range all {
		for attempt, at := range begun {
			if attempt <= s.attempt || s.at < at {
				continue
			}
			if !slices.ContainsFunc(r.all, func(f stroke) bool {
				return f.frozen && f.host == s.host && s.at > f.clock && s.at < f.overAt+1
			}) {
				r.t.Errorf("rank %d of attempt %d %s on %s %.3f s after attempt %d had begun", s.rank, s.attempt, s.what, s.host, s.at-at, attempt)
			}
		}
	}
}

// delivery is how long it may take until printed data is in the log. Data that was printed longer than that before a
// mishap must not be lost.
const delivery = 3 * time.Second

// checkLogs checks that every log is a beginning of what its rank has printed. If no mishap on its host can lose
// output, only the last line may be missing. Otherwise everything that was printed long enough before the first mishap
// must be there.
func (r *tally) checkLogs(report runreport.Report) {
	t := r.t
	paths, err := filepath.Glob(filepath.Join(r.dir, "own/*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no rank has printed anything: %v", err)
	}
	for _, path := range paths {
		var attempt, rank int
		var stream string
		if _, err := fmt.Sscanf(strings.ReplaceAll(filepath.Base(path), ".", " "), "%d %d %s", &attempt, &rank, &stream); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		own, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("attempts", strconv.Itoa(attempt), job.LogName(rank, stream))
		log, err := os.ReadFile(filepath.Join(r.home(), name))
		if err != nil {
			t.Errorf("a log of what was printed is not there: %v", err)
			continue
		}
		same := alike(own, log)
		if stream == "err" && bytes.HasPrefix(log[same:], []byte("Traceback ")) && (same == 0 || own[same-1] == '\n') {
			log = log[:same] // the traceback that Python prints at the end
		}
		if same < len(log) {
			t.Errorf("%s: differs from what was printed after %d of %d bytes: %q, want %q", name, same, len(log), log[same:min(same+80, len(log))], own[same:min(same+80, len(own))])
			continue
		}
		// The rank may not have printed its last line yet.
		must := bytes.LastIndexByte(bytes.TrimSuffix(own, []byte("\n")), '\n') + 1
		host := hostOf(report, attempt, rank)
		begun := slices.MinFunc(append([]stroke{{clock: monotonic()}}, slices.DeleteFunc(slices.Clone(r.all), func(s stroke) bool {
			return !s.anywhere && s.host != host
		})...), func(a, b stroke) int { return cmp.Compare(a.clock, b.clock) })
		if slices.ContainsFunc(r.all, func(s stroke) bool { return s.loses && (s.anywhere || s.host == host) }) {
			must = 0
			for _, line := range bytes.SplitAfter(own, []byte("\n")) {
				var at float64
				if _, err := fmt.Sscan(string(line), &at); err != nil || at > begun.clock-delivery.Seconds() {
					break
				}
				must += len(line)
			}
		}
		if len(log) < must {
			t.Errorf("%s of a rank on %s has %d bytes, want %d of %d at least", name, host, len(log), must, len(own))
		}
	}
}

// hostOf returns the host on which a rank of an attempt was placed.
func hostOf(report runreport.Report, attempt, rank int) string {
	for _, a := range report.Attempts {
		for _, p := range a.Placement {
			if a.Number == attempt && p.Rank == rank {
				return p.Host
			}
		}
	}
	return ""
}

// checkDirectories checks the directories of the agents. Only agents that were lost may have left one, and no process
// may hold its lock.
func (r *tally) checkDirectories() {
	for _, h := range r.bed.Hosts() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		left, err := h.Exec(ctx, "sh", "-c", `for d in /tmp/gangrun-0/* /var/tmp/gangrun-0/*; do [ ! -d "$d" ] || { echo "$d"; flock -n "$d/lock" true || echo "$d is held"; }; done`)
		cancel()
		if err != nil {
			r.t.Fatal(err)
		}
		lost := slices.ContainsFunc(r.all, func(s stroke) bool { return s.loses && (s.anywhere || s.host == h.Name()) })
		if strings.Contains(left, "held") || left != "" && !lost {
			r.t.Errorf("on %s there is left: %q", h.Name(), left)
		}
	}
}
