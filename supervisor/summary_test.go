package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestSummary compares the summaries with testdata/summary. With UPDATE=1, it writes the file.
func TestSummary(t *testing.T) {
	many := func(t *testing.T) *world {
		var exits []job.Exit
		for rank := range 12 {
			x := exited(rank, 1)
			x.Text = string(job.SemanticError)
			exits = append(exits, x)
		}
		w := newWorld(t, gang{steps: -1, exits: append(exits, exited(12, 0), stopped(signalled(13, 15))),
			left: []job.Unreaped{{Rank: 14, Host: "h9"}, {Rank: 15, Host: "h9"}}})
		w.spec.Ranks, w.spec.Preflight = 16, job.PreflightOff
		w.spec.Command = []string{"python", "-c", strings.Repeat("x", 300)}
		w.run(t)
		return w
	}
	tests := map[string]func(*testing.T) *world{
		"killed-and-resumed": twoAttempts,
		"many-ranks":         many,
		"preflight": func(t *testing.T) *world {
			w := newWorld(t)
			w.checker.findings = []job.Finding{
				{Check: "cores", Severity: job.SeverityNote, Text: "not worth a line"},
				{Check: "inputs", Severity: job.SeverityError, Host: "h1", Text: `input "data.csv" is missing`, Hint: "copy it to h1", Cause: &job.Cause{Category: job.IncorrectInputs}},
				{Check: "clock", Severity: job.SeverityWarning, Text: "clocks differ by 3 s"},
			}
			w.run(t)
			return w
		},
		"no-placement": func(t *testing.T) *world {
			w := newWorld(t)
			w.placer.err = NoPlacement{Text: "2 GPUs are needed, 1 is free", Hint: "ask for fewer with --ranks"}
			w.run(t)
			return w
		},
		"lease-lost": func(t *testing.T) *world {
			w := newWorld(t, gang{life: time.Hour})
			w.placer.lose, w.spec.Retries = 5*time.Second, 0
			w.run(t)
			return w
		},
		"cancelled": func(t *testing.T) *world {
			w := newWorld(t, gang{life: time.Hour})
			w.cancelAfter = time.Minute
			w.run(t)
			return w
		},
		"internal": func(t *testing.T) *world {
			w := newWorld(t, gang{err: errors.New("pipe broke")})
			w.run(t)
			return w
		},
		"under-way": func(t *testing.T) *world {
			w := newWorld(t, dies(exited(0, 7), job.NetworkError, 3), works())
			w.run(t)
			for i, e := range w.events {
				if e.Kind == job.KindAllStarted && e.Attempt == 2 {
					w.report = runreport.Fold(w.events[:i+2])
				}
			}
			return w
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", "summary", name+".txt")
			got := strings.Join(runreport.Summary(make(t).report), "\n") + "\n"
			if os.Getenv("UPDATE") == "1" {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t, dies(exited(0, 7), job.NetworkError, 3), works())
	w.run(t)
	var f runreport.Folder
	var lines []string
	for _, e := range w.events {
		f.Add(e)
		lines = append(lines, f.Status(e.Time).String())
	}
	want := []string{
		"preflight, static checks, 0.0s",
		"waiting, 2 GPUs are held by r0, 2.0s",
		"launching, attempt 1, 0 of 2 ranks, 5.0s",
		"launching, attempt 1, 2 of 2 ranks, 6.0s",
		"running, attempt 1, 2 of 2 ranks, 6.0s",
		"running, attempt 1, step 3/100, 2 of 2 ranks, 16s",
		"stopping, attempt 1, step 3/100, 1 of 2 ranks, 16s",
		"stopping, attempt 1, step 3/100, 0 of 2 ranks, 16s",
		"waiting, attempt 1, step 3/100, 2 GPUs are held by r0, 17s",
		"running, attempt 2, 2 of 2 ranks, 21s",
		"succeeded, attempt 2, step 100/100, 31s",
	}
	for _, line := range want {
		for len(lines) > 0 && lines[0] != line {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			t.Fatalf("no status %q", line)
		}
	}
	if got := f.Status(now.Add(time.Hour)).Elapsed; got != 31*time.Second {
		t.Errorf("a run that has ended goes on: %s", got)
	}
	loss := 0.123456
	s := runreport.Status{State: job.StateWaiting, Reason: "2 GPUs are held\nby r2", Step: -1, Loss: &loss}
	if got, want := s.String(), "waiting, loss 0.1235, 2 GPUs are held by r2, 0.0s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s = runreport.Status{State: job.StateRunning, Attempt: 1, Step: 12, LossIs: job.LossNaN, Ranks: 2, Alive: 2}
	if got, want := s.String(), "running, attempt 1, step 12, loss nan, 2 of 2 ranks, 0.0s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
