package curveview

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/curve/judge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// table returns CSV text. It has a column with the steps, and the columns that the function value writes for each
// step.
func table(steps int, columns string, value func(step int) string) string {
	var b strings.Builder
	b.WriteString("step," + columns + "\n")
	for step := range steps {
		fmt.Fprintf(&b, "%d,%s\n", step, value(step))
	}
	return b.String()
}

func TestChoose(t *testing.T) {
	yes := true
	path := write(t, "a.csv", table(20, "loss,train_part_loss,val_loss,val_accuracy,zeal", func(s int) string { return fmt.Sprintf("%d,1,%d,0.5,%d", 40-s, 50-s, s) }))
	for _, c := range []struct {
		o             Options
		metric, train string
		higher        bool
		err           error
	}{
		{Options{}, "val_loss", "loss", false, nil},
		{Options{Metric: "val_accuracy"}, "val_accuracy", "loss", true, nil},
		{Options{Metric: "loss"}, "loss", "loss", false, nil},
		{Options{Metric: "zeal", Higher: &yes}, "zeal", "loss", true, nil},
		{Options{Metric: "zeal"}, "", "", false, new(DirectionError)},
		{Options{Metric: "none"}, "", "", false, new(NoMetricError)},
	} {
		r, err := Read(context.Background(), []string{path}, c.o)
		if c.err != nil {
			if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", c.err) {
				t.Errorf("%+v: %v, want a %T", c.o, err, c.err)
			}
			continue
		}
		if err != nil || r.Metric.Series != c.metric || r.Metric.Higher != c.higher || r.Train.Series != c.train {
			t.Errorf("%+v: %+v, %v", c.o, r.Metric, err)
		}
	}
	none := new(NoMetricError)
	if _, err := Read(context.Background(), []string{write(t, "b.csv", "step,zeal\n1,2\n")}, Options{}); !errors.As(err, &none) {
		t.Errorf("no metric: %v", err)
	}
	if _, err := Read(context.Background(), []string{path + "x"}, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestDirectory checks that Read reads the files with metrics in a directory and below it.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(t.Context(), []string{dir}, Options{}); err == nil || !strings.Contains(err.Error(), "has 0 files whose name is") {
		t.Errorf("without files: %v", err)
	}
	for name, text := range map[string]string{
		"notes.txt": "step 1 loss 9\n", "log/version_0/metrics.csv": table(20, "loss", func(s int) string { return fmt.Sprint(20 - s) }),
		"log/eval/metrics.jsonl": "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n", ".git/metrics.csv": "step,val_loss\n1,0\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Read(t.Context(), []string{dir}, Options{})
	if err != nil || len(r.Files) != 2 || r.Metric.Series != "eval/loss" || r.Train.Values != 20 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestSaves checks that Read computes the GPU-hours from the times in the file and the number of GPUs. Without times,
// there are no GPU-hours.
func TestSaves(t *testing.T) {
	loss := func(s int) float64 {
		if s > 100 {
			return 1e5
		}
		return 2 - float64(s)/100
	}
	timed := write(t, "timed.csv", table(400, "loss,elapsed", func(s int) string { return fmt.Sprintf("%g,%d", loss(s), 36*(s+1)) }))
	untimed := write(t, "untimed.csv", table(400, "loss", func(s int) string { return fmt.Sprint(loss(s)) }))
	for path, want := range map[string]float64{timed: 8 * 36 * 601 / 3600.0, untimed: -1} {
		r, err := Read(context.Background(), []string{path}, Options{Total: 1000, GPUs: 8})
		if err != nil || len(r.Verdicts) != 1 || r.Verdicts[0].Kind != judge.Diverged || !r.Sure() {
			t.Fatalf("%s: %+v, %v", path, r.Verdicts, err)
		}
		saves := r.Verdicts[0].Saves
		if want < 0 && saves != nil || want > 0 && (saves == nil || math.Abs(*saves-want) > 0.01*want) {
			t.Errorf("%s: saves %v, want %g", path, saves, want)
		}
	}
	// In this case, the time of the run is known, but the file has no times.
	r, err := Read(context.Background(), []string{untimed}, Options{Total: 1000, GPUs: 8, Seconds: 36 * 399})
	if err != nil || r.Verdicts[0].Saves == nil || math.Abs(*r.Verdicts[0].Saves-8*36*601/3600.0) > 0.01 {
		t.Errorf("by the time of the run: %+v, %v", r.Verdicts, err)
	}
}

func TestEarlier(t *testing.T) {
	var earlier []string
	for i := range 3 {
		earlier = append(earlier, write(t, "e.csv", table(100, "val_loss", func(s int) string { return fmt.Sprint(1 + float64(i)/10) })))
	}
	path := write(t, "a.csv", table(80, "val_loss", func(s int) string { return fmt.Sprint(3 - float64(s)/100) }))
	r, err := Read(context.Background(), []string{path}, Options{Total: 100, Earlier: earlier})
	if err != nil || !slices.ContainsFunc(r.Verdicts, func(v judge.Verdict) bool { return v.Kind == judge.BelowPeers }) {
		t.Errorf("%+v, %v", r.Verdicts, err)
	}
}

func TestPrint(t *testing.T) {
	for name, c := range map[string]struct {
		value func(s int) float64
		want  []string
		not   string
	}{
		"linear":      {func(s int) float64 { return 3 - float64(s)/100 }, []string{"loss, by step", "best 2.01 at step 99", "no verdict"}, "logarithmic"},
		"logarithmic": {func(s int) float64 { return math.Exp(-float64(s) / 10) }, []string{"loss, logarithmic, by step"}, ""},
		"level":       {func(int) float64 { return 1 }, []string{"best 1 at step 0"}, "logarithmic"},
		"gaps": {func(s int) float64 {
			if s > 50 {
				return math.NaN()
			}
			return 1 + 1/float64(s+1)
		}, []string{"not-finite, confidence 99 %", "best 1.02 at step 50"}, ""},
		"nothing finite": {func(int) float64 { return math.Inf(1) }, []string{"not-finite", "100 values"}, "best"},
	} {
		r, err := Read(context.Background(), []string{write(t, "a.csv", table(100, "loss", func(s int) string { return fmt.Sprint(c.value(s)) }))}, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, width := range []int{1, 40, 80, 200} {
			var b strings.Builder
			if err := r.Print(&b, width, false); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%s: no %q in\n%s", name, want, b.String())
				}
			}
			if c.not != "" && strings.Contains(b.String(), c.not) {
				t.Errorf("%s: %q in\n%s", name, c.not, b.String())
			}
			for line := range strings.Lines(b.String()) {
				if n := len([]rune(strings.TrimSpace(line))); strings.ContainsAny(line, "┤┼╯") && n > max(width, 40)+2 {
					t.Errorf("%s: a line of the plot has %d columns of %d: %s", name, n, width, line)
				}
			}
		}
	}
}

// TestHalve checks that a series that is too long keeps its extremes, its ends, and the values that are not finite.
func TestHalve(t *testing.T) {
	s := newSeries("loss", "")
	for i := range maxPoints + 1 {
		v := 1.0
		switch i {
		case 70:
			v = 99
		case 1001:
			v = -99
		case 5000:
			v = math.NaN()
		}
		s.add(point{step: int64(i), value: v})
	}
	if n := len(s.points); n > maxPoints/2+4 {
		t.Fatalf("%d points are left", n)
	}
	low, high, bad := 0.0, 0.0, 0
	for i, p := range s.points {
		if i > 0 && p.step <= s.points[i-1].step {
			t.Fatalf("step %d follows step %d", p.step, s.points[i-1].step)
		}
		if !finite(p.value) {
			bad++
			continue
		}
		low, high = min(low, p.value), max(high, p.value)
	}
	if low != -99 || high != 99 || bad != 1 || s.points[len(s.points)-1].step != maxPoints {
		t.Errorf("low %g, high %g, %d not finite, last step %d", low, high, bad, s.points[len(s.points)-1].step)
	}
}
