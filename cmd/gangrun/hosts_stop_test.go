package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// startShared starts a gang of two ranks on two hosts. All hosts share gangrun's home.
func startShared(t *testing.T, script string, flags ...string) *farRun {
	t.Helper()
	bed := testhosts.Up(t, 2)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &farRun{t: t, bed: bed, gangrun: filepath.Join(bed.Shared(), "gangrun.sh")}
	own := filepath.Join(bed.Shared(), "gangrun")
	if out, err := exec.Command("cp", gangrun, own).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := fmt.Sprintf("#!/bin/sh\nGANGRUN_HOME=%s exec %s \"$@\"\n", filepath.Join(bed.Shared(), "home"), own)
	writeProgram(t, r.gangrun, []byte(text))
	args := append([]string{"run", "--hosts", "h1:1,h2:1", "-n", "2", "--mpi", "none", "--preflight", "off"}, flags...)
	r.control(append(args, "--", "sh", "-c", script)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gangrun said:\n%s", r.errs.String())
		}
	})
	return r
}

// shared returns the run. All hosts share its directory.
func (r *farRun) shared() home.Run {
	r.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(r.bed.Shared(), "home/runs/*"))
	if err != nil || len(dirs) != 1 {
		r.t.Fatalf("the runs are %q, %v", dirs, err)
	}
	return home.Run{ID: filepath.Base(dirs[0]), Dir: dirs[0]}
}

// made waits until the ranks have made all these files.
func (r *farRun) made(names ...string) {
	r.t.Helper()
	for _, name := range names {
		if !r.await(name, func() bool {
			_, err := os.Stat(filepath.Join(r.bed.Shared(), name))
			return err == nil
		}) {
			r.t.Fatal("gangrun has ended meanwhile")
		}
	}
}

// on runs gangrun on a host and returns its exit code and output.
func (r *farRun) on(h *testhosts.Host, args ...string) (code int, out, errs string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd, err := h.Command(ctx, append([]string{r.gangrun}, args...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// noRequest checks that no request to end the run is left.
func (r *farRun) noRequest() {
	r.t.Helper()
	if left, err := filepath.Glob(filepath.Join(r.shared().Dir, "stop-*")); err != nil || len(left) > 0 {
		r.t.Errorf("requests are left: %q, %v", left, err)
	}
}

// looked checks what gangrun ps and status say about the run on another host. forlorn says whether they must say that
// the controller may be gone.
func (r *farRun) looked(forlorn bool) {
	r.t.Helper()
	run := r.shared()
	for command, mark := range map[string]string{"ps": "?  ", "status": run.ID} {
		code, out, errs := r.on(r.bed.Host(2), command)
		note := strings.HasPrefix(errs, "gangrun: note: the controller of run "+run.ID+", process ") && strings.Contains(errs, "does not hold the lock") && strings.Contains(errs, "gangrun attach --force "+run.ID)
		if code != 0 || note != forlorn || !forlorn && errs != "" || strings.Contains(out, mark) != (forlorn || command == "status") {
			r.t.Errorf("gangrun %s ended with %d, want the controller gone: %v: %s%s", command, code, forlorn, out, errs)
		}
	}
}

// TestStopElsewhere ends a run from a host on which its controller is not.
func TestStopElsewhere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler string
		flags   []string
		tidied  bool
	}{
		"soft": {handler: "echo >tidied.$RANK; exit 0", tidied: true},
		"now":  {handler: "", flags: []string{"--now"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startShared(t, "trap '"+test.handler+"' TERM; echo >ready.$RANK; while :; do sleep 0.01; done", "--grace", "1h")
			r.made("ready.0", "ready.1")
			run := r.shared()
			r.looked(false)
			code, out, errs := r.on(r.bed.Host(2), append(append([]string{"stop"}, test.flags...), "-o", "json", run.ID)...)
			var summary home.Summary
			if err := json.Unmarshal([]byte(out), &summary); code != 0 || err != nil || summary.State != job.StateCancelled {
				t.Fatalf("gangrun stop ended with %d, %v: %s%s", code, err, out, errs)
			}
			if !strings.Contains(errs, "note: the run's controller is process ") {
				t.Errorf("gangrun stop said %q", errs)
			}
			if code := r.finish(); code != 143 {
				t.Errorf("the controller ended with %d", code)
			}
			for rank := range 2 {
				if _, err := os.Stat(filepath.Join(r.bed.Shared(), fmt.Sprintf("tidied.%d", rank))); (err == nil) != test.tidied {
					t.Errorf("rank %d has tidied up: %v, want %v", rank, err == nil, test.tidied)
				}
			}
			events, _, err := journal.Replay(run.JournalPath())
			if err != nil {
				t.Fatal(err)
			}
			report := runreport.Fold(events)
			want := "cancelled by " + strings.Join(append([]string{"gangrun stop"}, test.flags...), " ") + " (root on h2) while the gang was up"
			if report.Reason != want {
				t.Errorf("the reason is %q, want %q", report.Reason, want)
			}
			r.noRequest()
			if code, out, errs := r.on(r.bed.Host(2), "stop", run.ID); code != 0 || out != "run "+run.ID+": cancelled (it had already ended)\n" || errs != "" {
				t.Errorf("once more: %d, %s%s", code, out, errs)
			}
		})
	}
}

// TestStopNobodyElsewhere checks that gangrun stop takes a request back if no controller accepts it. A request for an
// earlier controller must not end the run of a later controller.
func TestStopNobodyElsewhere(t *testing.T) {
	t.Parallel()
	r := startShared(t, "echo >ready.$RANK; until test -e end; do sleep 0.01; done", "--orphan-grace", "1h")
	r.made("ready.0", "ready.1")
	run := r.shared()
	s, err := run.Summary()
	if err != nil || s.Controller == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	r.killController(r.cmd)
	<-r.exited
	r.looked(true)
	code, out, errs := r.on(r.bed.Host(1), "stop", run.ID)
	if code != 75 || out != "" || !strings.Contains(errs, "has not taken the request up within ") || !strings.Contains(errs, "gangrun attach --force "+run.ID) {
		t.Errorf("gangrun stop ended with %d: %s%s", code, out, errs)
	}
	r.noRequest()

	stale, err := run.AskStop(home.StopRequest{To: *s.Controller, By: home.Self(), Now: true, At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	r.control("attach", run.ID)
	if !r.await("attached", func() bool {
		now, err := run.Summary()
		return err == nil && now.Controller != nil && *now.Controller != *s.Controller
	}) {
		t.Fatal("gangrun attach has ended")
	}
	r.letGo()
	if code := r.finish(); code != 0 {
		t.Errorf("the run that was taken over ended with %d", code)
	}
	if stale.Taken() {
		t.Error("the later controller took a request for the earlier one")
	}
}
