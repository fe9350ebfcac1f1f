package runpage

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// recorded makes a run of four ranks with two attempts. Rank 3 prints the loss, for steps steps in each
// attempt.
func recorded(t *testing.T, steps int) home.Run {
	t.Helper()
	run, journal, err := home.Create(t.TempDir(), start, "job", []byte("command: [true]\n"), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	add := func(e job.Event) {
		e.Time = start.Add(time.Duration(e.Attempt) * time.Minute)
		if err := journal.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	add(job.Event{Kind: job.KindCreated, Run: run.ID, Spec: &job.Spec{Ranks: 4, Command: []string{"sh", "-c", "a & b"}}})
	for n := 1; n <= 2; n++ {
		dir, err := run.AttemptDir(n)
		if err != nil {
			t.Fatal(err)
		}
		add(job.Event{Kind: job.KindAttempt, Attempt: n, LogDir: dir})
		for rank := range 4 {
			var log strings.Builder
			for step := 1; step <= steps && rank == 3; step++ {
				fmt.Fprintf(&log, "step %d/100 loss %.3f val_accuracy 0.%d\n", step, 5/float64(step)/float64(n), step)
			}
			if rank == 0 {
				log.WriteString("nothing that is a metric\n")
			}
			if err := os.WriteFile(filepath.Join(dir, job.LogName(rank, "out")), []byte(log.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for step := range int64(2) {
			loss := 0.5 / float64(step+1)
			add(job.Event{Kind: job.KindProgress, Attempt: n, Rank: 3, Progress: &job.Progress{Step: 6 + step, Loss: &loss}})
		}
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	return run
}

func write(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b, Now{Time: start.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCurves: the curves of all attempts are those of the rank that prints a loss.
func TestCurves(t *testing.T) {
	run := recorded(t, 20)
	page, err := Read(t.Context(), t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	text := write(t, page)
	for _, want := range []string{run.ID, "sh -c &#39;a &amp; b&#39;", "loss; last 0.125 at step 20", "attempt 1, step 20: 0.25", "attempt 2, step 20: 0.125", ">Validation<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestHurried: if there is no time, the page is made from the journal alone.
func TestHurried(t *testing.T) {
	run := recorded(t, 20)
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	page, err := Read(t.Context(), hurried, run)
	if err != nil {
		t.Fatal(err)
	}
	text := write(t, page)
	for _, want := range []string{run.ID, "attempt 1, step 6: 0.5", "there was no time to read all logs of attempt 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "step 20") {
		t.Error("the page has something of the logs")
	}
}

// TestGone: without logs, the page has the losses of the journal.
func TestGone(t *testing.T) {
	run := recorded(t, 20)
	if err := os.RemoveAll(filepath.Join(run.Dir, "attempts")); err != nil {
		t.Fatal(err)
	}
	page, err := Read(t.Context(), t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if text := write(t, page); !strings.Contains(text, "loss; last 0.25 at step 7") {
		t.Error("the page lacks the loss of the journal")
	}
	if plot := page.Plot(80, 6); plot != nil {
		t.Errorf("a plot of two values: %q", plot)
	}
}

// TestLate: if there is no time for the logs, the page says so.
func TestLate(t *testing.T) {
	run := recorded(t, 20)
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(late, t.Context(), run); err == nil {
		t.Error("a journal was read in no time")
	}
	page := New(run)
	page.Add(job.Event{Kind: job.KindCreated, Time: start, Run: run.ID})
	page.Add(job.Event{Kind: job.KindAttempt, Time: start, Attempt: 2})
	page.ReadCurves(late, 1, mostBytes)
	if text := write(t, page); !strings.Contains(text, "no time to read all logs of attempt 2") {
		t.Error("the page does not say that its curves are cut off")
	}
}

// TestTooLarge: if the logs are too large, or only their beginning was read, the page has the losses of the
// journal.
func TestTooLarge(t *testing.T) {
	run := recorded(t, 5)
	page := New(run)
	page.Add(job.Event{Kind: job.KindCreated, Time: start, Run: run.ID})
	page.Add(job.Event{Kind: job.KindAttempt, Time: start, Attempt: 2})
	for i := range 20 {
		loss := 1 / float64(i+1)
		page.Add(job.Event{Kind: job.KindProgress, Time: start.Add(time.Duration(i) * time.Second), Attempt: 2, Rank: 3, Progress: &job.Progress{Step: int64(i), Loss: &loss}})
	}
	page.ReadCurves(t.Context(), 1, 10)
	text := write(t, page)
	if !strings.Contains(text, "logs of attempt 2 are too large") || !strings.Contains(text, "loss; last 0.05 at step 19") {
		t.Error("the page does not say that the logs are too large, or lacks the loss of the journal")
	}
	if plot := page.Plot(80, 6); len(plot) == 0 || !strings.Contains(plot[len(plot)-2], "19") {
		t.Errorf("the plot is %q", plot)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	page.ReadCurves(late, 1, mostBytes)
	if text := write(t, page); !strings.Contains(text, "loss; last 0.05 at step 19") {
		t.Error("the beginning of the logs replaces the loss of the journal")
	}
}

func TestPlot(t *testing.T) {
	for steps, lines := range map[int]int{leastPoints - 1: 0, leastPoints: 10, 100: 10} {
		page, err := Read(t.Context(), t.Context(), recorded(t, steps))
		if err != nil {
			t.Fatal(err)
		}
		plot := page.Plot(70, 6)
		if len(plot) > lines || lines > 0 && len(plot) < 8 {
			t.Errorf("%d steps: the plot has %d lines, want about %d:\n%s", steps, len(plot), lines, strings.Join(plot, "\n"))
		}
		for _, line := range plot {
			if n := len([]rune(line)); n > 70 {
				t.Errorf("%d steps: a line has %d columns, want at most 70: %q", steps, n, line)
			}
		}
	}
}

// TestSave: only the owner can read the page. A new page replaces the old one as a whole.
func TestSave(t *testing.T) {
	run := recorded(t, 20)
	page, err := Read(t.Context(), t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := page.Save(Now{Time: start}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(run.PagePath())
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() < 1000 {
		t.Errorf("the page is %v, %v", info, err)
	}
	if err := os.Remove(run.PagePath()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(run.PagePath(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := page.Save(Now{Time: start}); err == nil {
		t.Error("the page was written where a directory is")
	}
}
