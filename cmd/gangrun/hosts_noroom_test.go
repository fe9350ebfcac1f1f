package main_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// tightRanks is the number of ranks of a gang for which two hosts have just enough room.
const tightRanks = 4

// startTight starts such a gang. Its ranks end after letGo.
func startTight(t *testing.T, bed *testhosts.Bed, hosts string) *farRun {
	t.Helper()
	return startFarCommand(t, bed, hosts, tightRanks, job.MPINone, []string{"sh", "-c", ": >up.$GANGRUN_ATTEMPT.$RANK; until test -e end; do sleep 0.02; done"},
		"--retries", "3", "--host-timeout", "12s", "--orphan-grace", "8s")
}

// noted waits until the journal has a note that begins with text.
func (r *farRun) noted(text string) {
	r.t.Helper()
	if !r.await(text, func() bool {
		return slices.ContainsFunc(r.events(), func(e job.Event) bool { return e.Kind == job.KindNote && strings.HasPrefix(e.Text, text) })
	}) {
		r.t.Fatalf("gangrun has ended, and did not say %q", text)
	}
}

// up waits until all ranks of an attempt run.
func (r *farRun) up(attempt int) {
	r.t.Helper()
	if !r.await(fmt.Sprintf("attempt %d", attempt), func() bool {
		ready, err := filepath.Glob(filepath.Join(r.bed.Shared(), fmt.Sprintf("up.%d.*", attempt)))
		return err == nil && len(ready) == tightRanks
	}) {
		r.t.Fatalf("gangrun has ended before attempt %d", attempt)
	}
}

// goWell lets the ranks end, and checks on which hosts each attempt was.
func (r *farRun) goWell(hosts ...string) {
	r.t.Helper()
	r.letGo()
	if code := r.finish(); code != 0 {
		r.t.Errorf("exit code %d", code)
	}
	var got []string
	for _, a := range r.report().Attempts {
		var names []string
		for _, rank := range a.Placement {
			names = append(names, rank.Host)
		}
		got = append(got, strings.Join(slices.Compact(names), " "))
	}
	if !slices.Equal(got, hosts) {
		r.t.Errorf("the attempts were on %q, want %q", got, hosts)
	}
}

const waitsForH2 = "no room without h2, which cannot be used yet: waiting for it"

// startWaiting starts a gang, kills h2 and waits until gangrun says that it waits for h2.
func startWaiting(t *testing.T) *farRun {
	t.Helper()
	bed := testhosts.Up(t, 2)
	r := startTight(t, bed, "h1:2,h2:2")
	r.up(1)
	if err := bed.Host(2).Kill(); err != nil {
		t.Fatal(err)
	}
	r.noted(waitsForH2)
	return r
}

// TestNoRoomElsewhere checks a gang that has no room without a host that was lost. It must wait, and not start an
// attempt, until the host can be used again.
func TestNoRoomElsewhere(t *testing.T) {
	t.Parallel()
	t.Run("until it answers", func(t *testing.T) {
		t.Parallel()
		r := startWaiting(t)
		if err := r.bed.Host(2).Boot(); err != nil {
			t.Fatal(err)
		}
		r.up(2)
		r.goWell("h1 h2", "h1 h2")
	})
	t.Run("until it passes the checks", func(t *testing.T) {
		t.Parallel()
		bed := testhosts.Up(t, 2)
		dir, away := filepath.Join(bed.Shared(), "dir"), filepath.Join(bed.Shared(), "away")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		r := startFarCommand(t, bed, "h1:2,h2:2", tightRanks, job.MPINone, []string{"sh", "-c", ": >../up.$GANGRUN_ATTEMPT.$RANK; until test -e ../end; do sleep 0.02; done"},
			"--retries", "3", "--host-timeout", "12s", "--orphan-grace", "8s", "--preflight", "static", "--workdir", dir)
		r.up(1)
		err := errors.Join(os.Rename(dir, away), bed.Host(2).Kill(), bed.Host(2).Boot())
		if err != nil {
			t.Fatal(err)
		}
		r.noted(waitsForH2 + fmt.Sprintf(", 10 minutes at most (h2: the working directory %q does not exist)", dir))
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		r.up(2)
		r.goWell("h1 h2", "h1 h2")
	})
	t.Run("until it is stopped", func(t *testing.T) {
		t.Parallel()
		r := startWaiting(t)
		if code, out, errs := r.ask(r.gangrun, "stop", "last"); code != 0 || !strings.Contains(out, ": cancelled") {
			t.Errorf("gangrun stop ended with %d: %s%s", code, out, errs)
		}
		if code := r.finish(); code != 128+int(syscall.SIGTERM) {
			t.Errorf("exit code %d", code)
		}
		if report := r.report(); report.State != job.StateCancelled || len(report.Attempts) != 1 || !strings.HasSuffix(report.Reason, " while waiting for a place") {
			t.Errorf("%s after %d attempts: %s", report.State, len(report.Attempts), report.Reason)
		}
	})
	t.Run("on what answers", func(t *testing.T) {
		t.Parallel()
		bed := testhosts.Up(t, 3)
		r := startTight(t, bed, "h1:2,h2:2,h3:2")
		r.up(1)
		if err := bed.Host(2).Kill(); err != nil {
			t.Fatal(err)
		}
		r.up(2)
		if err := bed.Host(2).Boot(); err != nil {
			t.Fatal(err)
		}
		if err := bed.Host(3).Kill(); err != nil {
			t.Fatal(err)
		}
		r.up(3)
		r.noted("there is no place without h2; placing the gang on it again")
		r.goWell("h1 h2 h3", "h1 h3", "h1 h2")
	})
}
