//go:build soak

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testseed"
)

// trainings has the examples whose ranks are killed.
var trainings = []struct {
	name, file, extension string
	bench                 func(*testing.T) (*bench, func(options ...string) []string)
}{
	{"torch", "examples/digits/train.py", "pt", digits},
	{"MPI", "examples/digits-mpi/train.py", "npz", mpiDigits},
}

const (
	digitsRanks = 2
	digitsSteps = 48
	digitsEvery = 5 // number of steps between two checkpoints
	// tornWriter is Python code that writes checkpoints in pieces and under their final names. If a rank is killed
	// while it writes, a broken checkpoint is left.
	tornWriter = `def write_torn(path, data):
    with open(path, "wb") as f:
        for at in range(0, len(data), len(data) // 16 + 1):
            f.write(data[at:at + len(data) // 16 + 1])
            f.flush()
            time.sleep(0.005)


def prune(`
)

// digitsKill says at which moment of an attempt ranks are killed, and which ranks.
type digitsKill struct {
	Moment string // "step", "save" or "start"
	At     int    // the step, or the number of the checkpoint
	After  time.Duration
	Rank   int // the rank to kill; -1 for all ranks
	Beyond int // the attempt must have made more than so many steps; with Moment "start", it may have made fewer
}

// TestSoakDigitsKilled runs COUNT trainings of the example digits, with torch or MPI, and kills ranks at random
// moments. It kills one rank or all ranks, during a step, while they write a checkpoint, or while they load one. No
// two attempts in a row are killed at the start, so that the training makes progress. Otherwise gangrun would give up
// the checkpoint from which both started, or the job. Each training must resume from a good checkpoint and lose no
// more steps than lie between two checkpoints. In the end, it must have the weights of an undisturbed run. SEED
// repeats the choices, but not the exact times.
func TestSoakDigitsKilled(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 100)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	whole := map[string]string{}
	for _, training := range trainings {
		b, args := training.bench(t)
		r := b.start(nil, digitsArgs(args("--out=whole"))...)
		if code := r.finish(); code != 0 {
			t.Fatalf("%s: exit code %d of a run that nobody disturbs", training.name, code)
		}
		r.gone()
		if whole[training.name] = b.file("whole"); whole[training.name] == "" {
			t.Fatalf("%s: no weights", training.name)
		}
	}
	all := digitsTally{kills: tallyOf{}}
	for n := range count {
		t.Run(fmt.Sprintf("round%d", n), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, n))
			training := trainings[random.IntN(len(trainings))]
			b, args := training.bench(t)
			b.killedAgain(training.file)
			torn := random.IntN(3) > 0
			if torn {
				b.writeTorn(training.file)
			}
			r := b.start(nil, digitsArgs(args("--out=broken", "--step-sleep=0.03"))...)
			kills := 1 + random.IntN(3)
			moments := []string{"step", "save", "save", "start"}
			furthest := 0
			for i := range kills {
				k := digitsKill{Moment: moments[random.IntN(len(moments))], Rank: random.IntN(digitsRanks+1) - 1, Beyond: furthest}
				if moments = moments[:3]; k.Moment != "start" {
					moments = append(moments, "start")
				}
				k.At, k.After = 1+random.IntN(digitsSteps-2), time.Duration(random.IntN(40))*time.Millisecond
				if k.Moment == "start" {
					k.After *= 50
				}
				if k.Moment == "save" {
					k.At, k.After = 1+random.IntN(digitsSteps/digitsEvery), 2*k.After
				}
				all.kills[k.Moment] += r.killDigits(t, k, i+1, training.extension)
				furthest = max(furthest, r.digitsStep(i+1))
			}
			if code := r.finish(); code != 0 {
				t.Fatalf("%s, torn %v: exit code %d", training.name, torn, code)
			}
			r.gone()
			if b.file("broken") != whole[training.name] {
				t.Errorf("%s: the weights differ from those of an undisturbed run", training.name)
			}
			all.check(t, b)
		})
	}
	t.Logf("%d attempts failed, killed %v; %d resumed, %d of them past a broken checkpoint; at most %d steps were lost", all.failed, all.kills, all.resumed, all.skipped, all.lost)
}

func digitsArgs(args []string) []string {
	return append([]string{"--preflight", "off", "-n", fmt.Sprint(digitsRanks), "--retries", "20", "--grace", "1s"}, args...)
}

// killedAgain allows gangrun to restart a training as often as its ranks are killed.
func (b *bench) killedAgain(file string) {
	b.t.Helper()
	path := filepath.Join(b.dir, filepath.Dir(file), "job.yaml")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("\npolicy: {killed: again}\n"); err != nil {
		b.t.Fatal(err)
	}
}

// writeTorn makes a training write its checkpoints with tornWriter.
func (b *bench) writeTorn(file string) {
	b.t.Helper()
	text := b.file(file)
	slow := strings.Replace(text, "            write_atomically(path, file.getvalue())\n", "            write_torn(path, file.getvalue())\n", 1)
	if slow == text {
		b.t.Fatal("the example does not write its checkpoints as it did")
	}
	text = strings.Replace(slow, "def prune(", tornWriter, 1)
	if err := os.WriteFile(filepath.Join(b.dir, file), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// killDigits kills ranks of an attempt. It returns the number of attempts that it has hit, which is 0 if the training
// had already ended.
func (r *controlled) killDigits(t *testing.T, k digitsKill, attempt int, extension string) (hit int) {
	t.Helper()
	over := func() bool {
		select {
		case <-r.exited:
			return true
		default:
			return false
		}
	}
	saves := func() int {
		found, _ := filepath.Glob(filepath.Join(r.dir, "examples/digits*/checkpoints/*ckpt-*."+extension+"*"))
		return len(found)
	}
	before := 0
	r.await(fmt.Sprintf("attempt %d", attempt), func() bool {
		before = saves()
		return over() || slices.ContainsFunc(r.events(), func(e job.Event) bool { return e.Kind == job.KindAllStarted && e.Attempt == attempt })
	})
	r.await(fmt.Sprintf("%+v", k), func() bool {
		switch k.Moment {
		case "step": // or after a later step, if the attempt has resumed from a later one
			return over() || r.digitsStep(attempt) >= max(k.At, k.Beyond+1)
		case "save":
			return over() || saves() >= min(before+1, max(k.At, 1)) && saves() > 0 && r.digitsStep(attempt) > k.Beyond
		}
		return true
	})
	time.Sleep(k.After) // makes the moment random
	r.await("another step", func() bool { return over() || k.Beyond == 0 || r.digitsStep(attempt) != k.Beyond })
	for rank := range digitsRanks {
		if over() || k.Rank >= 0 && rank != k.Rank {
			continue
		}
		pid := 0
		for _, e := range r.events() {
			if e.Kind == job.KindStarted && e.Attempt == attempt && e.Rank == rank {
				pid = e.PID
			}
		}
		if pid > 0 && r.strike(pid, unix.SIGKILL) {
			hit = 1
		}
	}
	if hit == 0 {
		return 0
	}
	r.await("the end of the attempt", func() bool {
		return over() || slices.ContainsFunc(r.events(), func(e job.Event) bool { return e.Kind == job.KindOutcome && e.Attempt == attempt })
	})
	return hit
}

// digitsStep returns the last step that rank 0 of an attempt has printed. It returns 0 if there is none.
func (r *controlled) digitsStep(attempt int) (step int) {
	found, _ := filepath.Glob(filepath.Join(r.dir, "home/runs/*/attempts", fmt.Sprint(attempt), job.LogName(0, "out")))
	if len(found) == 0 {
		return 0
	}
	data, _ := os.ReadFile(found[0])
	if i := strings.LastIndex(string(data), "\nstep "); i >= 0 {
		_, _ = fmt.Sscanf(string(data)[i+1:], "step %d/", &step)
	}
	return step
}

// digitsTally has the results of all rounds.
type digitsTally struct {
	kills                    tallyOf
	failed, resumed, skipped int
	lost                     int64 // the largest number of lost steps
}

// tallyOf has numbers by name.
type tallyOf map[string]int

// check checks that each attempt began at the last checkpoint of the attempt before it.
func (all *digitsTally) check(t *testing.T, b *bench) {
	t.Helper()
	report := b.report()
	if report.State != job.StateSucceeded {
		t.Fatalf("state %s", report.State)
	}
	for _, note := range report.Notes {
		if strings.HasPrefix(note, "checkpoints: skipped") {
			all.skipped++
		}
	}
	furthest := int64(0)
	for _, a := range report.Attempts {
		if a.Cause != nil {
			all.failed++
			if a.Cause.Category == job.CheckpointError {
				t.Errorf("attempt %d could not load its checkpoint: %s", a.Number, a.Cause.Text)
			}
		}
		from := int64(0)
		if a.ResumeFrom != "" {
			all.resumed++
			name := filepath.Base(a.ResumeFrom)
			if _, err := fmt.Sscanf(name, "ckpt-%d", &from); err != nil {
				t.Errorf("attempt %d resumed from %s", a.Number, name)
			}
			if want := fmt.Sprintf("resumed from %s at step %d\n", a.ResumeFrom, from); a.Step > from && !strings.Contains(said(t, &a, 0), want) {
				t.Errorf("attempt %d did not say %q", a.Number, want)
			}
		}
		if lost := furthest - from; lost > digitsEvery {
			t.Errorf("attempt %d began at step %d, and step %d had been reached: more than %d steps are lost", a.Number, from, furthest, digitsEvery)
		} else {
			all.lost = max(all.lost, lost)
		}
		furthest = max(furthest, a.Step)
	}
}
