package curvewatch

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is the maximum time of every wait of a test that fails.
const limit = time.Minute

// gang is a Runner whose gang writes what a test wants. It ends when the verdicts for which it waits have come,
// or when ctx ends.
type gang struct {
	work func(a job.Attempt, emit func(job.Event))
	more func() // called again and again, until ctx ends
}

func (g gang) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if g.work != nil {
		g.work(a, emit)
	}
	for ctx.Err() == nil {
		if g.more != nil {
			g.more()
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return job.Outcome{}, nil
}

// until runs an attempt until a verdict of a kind comes, and returns it.
func until(t *testing.T, w *Watcher, a job.Attempt, kind judge.Kind) (found job.CurveVerdict) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := w.Run(ctx, a, func(e job.Event) {
		if e.Kind == job.KindCurve && e.Curve.Kind == string(kind) {
			found = *e.Curve
			cancel()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if found.Kind == "" {
		t.Fatalf("no verdict %s came within %s", kind, limit)
	}
	return found
}

func attempt(t *testing.T, number int) job.Attempt {
	return job.Attempt{Number: number, LogDir: t.TempDir(), Placement: job.Placement{Ranks: []job.Rank{{Rank: 0}, {Rank: 1, Host: "h2"}}}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Error(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
		_ = file.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// bad returns lines of a loss that becomes NaN.
func bad(format string) string {
	var b strings.Builder
	for step := range 30 {
		value := 1 + 1/float64(step+1)
		if step >= 20 {
			value = math.NaN()
		}
		fmt.Fprintf(&b, format+"\n", step, value)
	}
	return b.String()
}

// TestWhereMetricsAre: while the job runs, gangrun finds a loss that becomes NaN wherever the job writes it.
func TestWhereMetricsAre(t *testing.T) {
	old := "step,loss\n0,nan\n1,nan\n2,nan\n3,nan\n4,nan\n5,nan\n"
	for name, c := range map[string]struct {
		before, work func(t *testing.T, dir string, a job.Attempt, emit func(job.Event))
		source       string
	}{
		"output of rank 0": {nil, func(t *testing.T, dir string, a job.Attempt, _ func(job.Event)) {
			write(t, filepath.Join(a.LogDir, job.LogName(0, "out")), bad("step %d loss %g"))
		}, "rank-0000.out"},
		"output of another rank, to standard error": {nil, func(t *testing.T, dir string, a job.Attempt, _ func(job.Event)) {
			write(t, filepath.Join(a.LogDir, job.LogName(0, "out")), "hello\n")
			write(t, filepath.Join(a.LogDir, job.LogName(1, "err")), bad("step %d loss %g"))
		}, "rank-0001.err"},
		"progress": {nil, func(t *testing.T, dir string, a job.Attempt, emit func(job.Event)) {
			for step := range int64(30) {
				p := job.Progress{Step: step}
				if p.SetLoss(1 / float64(step+1)); step >= 20 {
					p.SetLoss(math.Inf(1))
				}
				emit(job.Event{Kind: job.KindProgress, Rank: 1, Progress: &p})
			}
		}, "progress of rank 1"},
		"CSV": {nil, func(t *testing.T, dir string, _ job.Attempt, _ func(job.Event)) {
			write(t, filepath.Join(dir, "logs/version_0/metrics.csv"), "step,loss\n"+bad("%d,%g"))
		}, "metrics.csv"},
		"JSON lines": {nil, func(t *testing.T, dir string, _ job.Attempt, _ func(job.Event)) {
			write(t, filepath.Join(dir, "log.jsonl"), strings.ReplaceAll(bad(`{"step": %d, "train_loss": %g}`), ": NaN", ": NaN"))
		}, "log.jsonl"},
		"a CSV of earlier runs, to which the job appends": {func(t *testing.T, dir string, _ job.Attempt, _ func(job.Event)) {
			write(t, filepath.Join(dir, "metrics.csv"), old)
			past := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(dir, "metrics.csv"), past, past); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, dir string, _ job.Attempt, _ func(job.Event)) {
			write(t, filepath.Join(dir, "metrics.csv"), bad("%d,%g"))
		}, "metrics.csv"},
		"trainer_state.json": {nil, func(t *testing.T, dir string, _ job.Attempt, _ func(job.Event)) {
			var entries []map[string]any
			for step := range 30 {
				var loss any = 1 + 1/float64(step+1)
				if step >= 20 {
					loss = "NaN"
				}
				entries = append(entries, map[string]any{"step": step + 1, "loss": loss})
			}
			data, err := json.Marshal(map[string]any{"max_steps": 100, "log_history": entries})
			if err != nil {
				t.Error(err)
			}
			write(t, filepath.Join(dir, "checkpoint-30/trainer_state.json"), string(data))
		}, "trainer_state.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, a := t.TempDir(), attempt(t, 1)
			if c.before != nil {
				c.before(t, dir, a, nil)
			}
			w := New(gang{work: func(a job.Attempt, emit func(job.Event)) { c.work(t, dir, a, emit) }}, Options{Dirs: []string{dir}, Setup: judge.Setup{Total: 100}})
			v := until(t, w, a, judge.NotFinite)
			if !strings.HasSuffix(v.Source, c.source) || v.Since < 20 || v.Since > 21 || v.SinceTime.IsZero() {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// TestOldFilesAreLeftAlone: files that were there before the run and do not change have no effect.
func TestOldFilesAreLeftAlone(t *testing.T) {
	dir, a := t.TempDir(), attempt(t, 1)
	path := filepath.Join(dir, "metrics.csv")
	write(t, path, "step,loss\n"+bad("%d,%g"))
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	target := 0.5
	w := New(gang{work: func(a job.Attempt, _ func(job.Event)) {
		write(t, filepath.Join(a.LogDir, job.LogName(0, "out")), "step 1 loss 0.1\nstep 2 loss 0.1\nstep 3 loss 0.1\nstep 4 loss 0.1\nstep 5 loss 0.1\nstep 6 loss 0.1\n")
	}}, Options{Dirs: []string{dir}, Setup: judge.Setup{Target: &target}})
	if v := until(t, w, a, judge.Reached); v.Metric != "loss" {
		t.Errorf("got %+v", v)
	}
	for _, s := range w.track.series {
		if s.source == path {
			t.Errorf("%s was read", path)
		}
	}
}

// TestNothingDisturbs: a directory that cannot be read, damaged files and impossible metrics delay neither the
// gang nor its end.
func TestNothingDisturbs(t *testing.T) {
	dir, a := t.TempDir(), attempt(t, 1)
	if err := unix.Mkfifo(filepath.Join(dir, "metrics.csv"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(a.LogDir, job.LogName(0, "out")), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxFiles {
		write(t, filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d", i)), strings.Repeat("x", 100))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	w := New(gang{}, Options{Dirs: []string{dir, "/nowhere", ""}})
	if _, err := w.Run(ctx, a, func(e job.Event) { t.Errorf("emitted %+v", e) }); err != nil {
		t.Error(err)
	}
	if w.spent < 2*2 || w.spent > 2*60 {
		t.Errorf("the gang has used %g rank-seconds", w.spent)
	}
	a.Number = 0
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Run(ended, a, func(job.Event) {}); err != nil { // a trial is not watched
		t.Error(err)
	}
}

// TestTensorBoard: gangrun follows an event file of a real writer while it grows.
func TestTensorBoard(t *testing.T) {
	data, err := os.ReadFile("../metrics/testdata/events.out.tfevents.digits")
	if err != nil {
		t.Fatal(err)
	}
	dir, rest := t.TempDir(), data[7:]
	path := filepath.Join(dir, "runs", "events.out.tfevents.1.host")
	target := -1e9 // any accuracy is higher
	w := New(gang{work: func(job.Attempt, func(job.Event)) { write(t, path, string(data[:7])) }, more: func() {
		n := min(len(rest), 1000)
		write(t, path, string(rest[:n]))
		rest = rest[n:]
	}}, Options{Dirs: []string{dir}, Setup: judge.Setup{Target: &target}})
	if v := until(t, w, attempt(t, 1), judge.Reached); v.Source != path || v.Value == nil {
		t.Errorf("got %+v", v)
	}
}

// TestFrozen: a file system that does not answer delays the end of the gang by at most lastLook. As long as
// readers are left, the next attempt has none, and says so.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frozen := make(chan struct{})
		var asked atomic.Int32
		const ran = 2 * look // how long each gang runs after its first point
		point := func(_ job.Attempt, emit func(job.Event)) {
			emit(job.Event{Kind: job.KindProgress, Progress: &job.Progress{Step: 1, Metrics: map[string]float64{"loss": 1}}})
			time.Sleep(ran)
		}
		w := New(gang{work: point}, Options{Earlier: func(context.Context) []Curve { asked.Add(1); <-frozen; return nil }})
		run := func(number int) (notes []string, took time.Duration) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			if _, err := w.Run(ended, job.Attempt{Number: number, LogDir: "/nowhere"}, func(e job.Event) {
				if e.Kind == job.KindNote {
					notes = append(notes, e.Text)
				}
			}); err != nil {
				t.Error(err)
			}
			return notes, time.Since(began) - ran
		}
		if notes, took := run(1); len(notes) != 0 || took != lastLook || asked.Load() != 1 {
			t.Errorf("the first attempt took %s, asked %d times, and says %q", took, asked.Load(), notes)
		}
		if w.files != nil {
			t.Error("the next attempt would share its files with the reader that is left")
		}
		if notes, took := run(2); len(notes) != 1 || !strings.Contains(notes[0], "not judged") || took != lastLook || asked.Load() != 1 {
			t.Errorf("the second attempt took %s, asked %d times, and says %q", took, asked.Load(), notes)
		}
		close(frozen)
		if notes, took := run(3); len(notes) != 0 || took != 0 || asked.Load() != 2 {
			t.Errorf("the third attempt took %s, asked %d times, and says %q", took, asked.Load(), notes)
		}
	})
}
