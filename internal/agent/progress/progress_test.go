package progress

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/curve"
	"github.com/gangrun/gangrun/internal/job"
)

// scanned returns the progress that a Scanner finds in pieces. Nothing is thinned out.
func scanned(pieces ...[]byte) (found []job.Progress) {
	l := reporting(math.MaxInt, func(f job.Progress) { found = append(found, f) })
	for _, piece := range pieces {
		l.Scan(piece)
	}
	l.Rank.Flush()
	return found
}

// reporting returns the stream of a rank whose first steps are reported at once.
func reporting(steps int, emit func(job.Progress)) *Scanner {
	return &Scanner{Rank: &Rank{Steps: steps, Emit: emit}}
}

// expected returns the progress in the whole text, searched line by line.
func expected(text []byte) (found []job.Progress) {
	finer := false
	var reader curve.Reader
	var counter curve.Counter
	lines := bytes.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if n := len(lines); n > 0 && !bytes.HasSuffix(text, []byte("\n")) && !bytes.HasSuffix(text, []byte("\r")) {
		lines = lines[:n-1] // the last line has not ended
	}
	for _, line := range lines {
		f, ok := reader.Line(line)
		if ok {
			f = counter.Add(f)
		}
		switch {
		case ok && f.ByEpoch && finer && f.HasLoss(): // the loss belongs to the last step
			last := found[len(found)-1]
			last.Loss, last.LossIs = f.Loss, f.LossIs
			found = append(found, last)
		case ok && (!f.ByEpoch || !finer):
			finer = finer || !f.ByEpoch
			found = append(found, f)
		}
	}
	return found
}

// cut cuts text into pieces of 1 to most bytes.
func cut(text []byte, most int, random *rand.Rand) (pieces [][]byte) {
	for len(text) > 0 {
		n := min(1+random.IntN(most), len(text))
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// table reports whether a text has a table. A Scanner may find other rows of a table in large pieces than in the whole
// text.
func table(text []byte) bool {
	var reader curve.Reader
	for _, line := range bytes.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if _, ok := curve.Parse(line); ok {
			continue
		}
		if _, ok := reader.Line(line); ok {
			return true
		}
	}
	return false
}

// within reports whether the elements of part are in whole in the same order.
func within(part, whole []job.Progress) bool {
	for _, f := range part {
		i := slices.IndexFunc(whole, func(w job.Progress) bool { return reflect.DeepEqual(alone(w), alone(f)) })
		if i < 0 {
			return false
		}
		whole = whole[i+1:]
	}
	return true
}

// alone returns the progress without the values that come from earlier lines.
func alone(p job.Progress) job.Progress {
	p.Count, p.Restarts, p.Epoch = 0, false, -1
	return p
}

// training returns output of a trainer: progress bars that are redrawn, lines, and some lines that are far longer than
// the part that a Scanner searches.
func training(steps int) []byte {
	var b bytes.Buffer
	for i := range steps {
		fmt.Fprintf(&b, " %d%%|###   | %d/%d [00:12<00:15,  3.61it/s]\r", 100*i/steps, i, steps)
		if i%7 == 0 {
			fmt.Fprintf(&b, "step %d/%d loss %.3f\n", i, steps, 1/float64(i+1))
		}
		if i%50 == 30 {
			fmt.Fprintf(&b, "Step Temp Press\n%d 1.5 -2.5\n%d 1.25 -2.25\nLoop time of 3\n%d 1.5 2.5\n", i, i+1, i+2)
		}
		if i%50 == 10 {
			fmt.Fprintf(&b, "%s max_steps=77\nconfig %s max step 99\n%s step %d/%d\r\n", strings.Repeat("x ", i*40), strings.Repeat("step 3", i*5), strings.Repeat("y ", i*45), i, steps)
		}
	}
	return b.Bytes()
}

// TestProgressInPieces checks that a Scanner finds the same steps, however the stream is divided into pieces.
func TestProgressInPieces(t *testing.T) {
	text := training(300)
	want := expected(text)
	if len(want) < 300 {
		t.Fatalf("the text has %d steps, want one of each of 300 lines or more", len(want))
	}
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		for _, most := range []int{1, 7, 100, firstPiece, scanBytes} {
			if got := scanned(cut(text, most, random)...); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, pieces of up to %d bytes: found %d steps, want %d; the first differs at %d", seed, most, len(got), len(want), differs(got, want))
			}
		}
		// A Scanner searches only the end of larger pieces. It must not find steps that are not there.
		for _, most := range []int{3 * scanBytes, largestPiece} {
			got := scanned(cut(text, most, random)...)
			if len(got) == 0 || !within(got, want) {
				t.Fatalf("seed %d, pieces of up to %d bytes: found %d steps, not all of them in the text", seed, most, len(got))
			}
		}
	}
}

func differs(a, b []job.Progress) int {
	for i := range min(len(a), len(b)) {
		if !reflect.DeepEqual(a[i], b[i]) {
			return i
		}
	}
	return min(len(a), len(b))
}

func FuzzProgress(f *testing.F) {
	f.Add([]byte("step 1\nstep 2 loss 0.5\r\nepoch 3\n"), uint16(3), uint64(1))
	f.Add([]byte("epoch 1\nstep 1\nepoch 2\nstep 9"), uint16(5000), uint64(2))
	f.Add([]byte(strings.Repeat("w ", 3000)+"step 12/20\n\n\r\r"), uint16(100), uint64(3))
	f.Add([]byte(strings.Repeat("max_steps=300 ", 900)+"\nstep 7\n"), uint16(9000), uint64(4))
	f.Add(training(30), uint16(2000), uint64(5))
	f.Add([]byte("step 3\nepoch 1 loss 0.5\nStep A\n1 2\n"), uint16(7), uint64(6))
	f.Fuzz(func(t *testing.T, text []byte, most uint16, seed uint64) {
		pieces := cut(text, int(most)+1, rand.New(rand.NewPCG(seed, 2)))
		got, want := scanned(pieces...), expected(text)
		if !(int(most) >= scanBytes && table(text)) && !within(got, want) {
			t.Fatalf("found what is not in the text: %v, want of %v", got, want)
		}
		// curve.Parse searches the end of a line without its trailing blanks, and the Scanner the end with the blanks.
		if int(most) < scanBytes && !bytes.Contains(text, bytes.Repeat([]byte(" "), 20)) && len(got) != len(want) {
			t.Fatalf("found %d steps, want %d", len(got), len(want))
		}
	})
}

// TestProgressPrefersSteps checks that lines with steps take precedence over lines with epochs.
func TestProgressPrefersSteps(t *testing.T) {
	got := scanned([]byte("Epoch 1/3\nstep 10/90\nEpoch 2/3\nstep 40/90\n"))
	var steps []string
	for _, f := range got {
		steps = append(steps, fmt.Sprintf("%d/%d %t", f.Step, f.Total, f.ByEpoch))
	}
	if want := []string{"1/3 true", "10/90 false", "40/90 false"}; !slices.Equal(steps, want) {
		t.Errorf("found %q, want %q", steps, want)
	}
}

// lossy formats the reported steps with their losses.
func lossy(found []job.Progress) (steps []string) {
	for _, f := range found {
		text := fmt.Sprint(f.Step)
		if f.Loss != nil {
			text += fmt.Sprintf(" %g", *f.Loss)
		}
		steps = append(steps, strings.TrimSpace(text+" "+f.LossIs))
	}
	return steps
}

// timed is the output of a rank with a clock that the test controls, and the progress that was reported of it.
type timed struct {
	*Scanner
	t     *testing.T
	found []job.Progress
}

func newTimed(t *testing.T, steps int) *timed {
	c := &timed{t: t}
	c.Scanner = reporting(steps, func(f job.Progress) { c.found = append(c.found, f) })
	return c
}

// expect waits until every timer that is due has fired, and compares the progress reported since the last call.
func (c *timed) expect(want ...string) {
	c.t.Helper()
	synctest.Wait()
	c.Rank.mu.Lock() // guards found
	defer c.Rank.mu.Unlock()
	if got := lossy(c.found); !slices.Equal(got, want) {
		c.t.Fatalf("reported are %q, want %q", got, want)
	}
	c.found = nil
}

// TestProgressIsThinnedOut checks that the first steps are reported at once, later steps once a second, and the last
// step in any case.
func TestProgressIsThinnedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t, 2)
		c.Scan([]byte("step 1\nstep 2\nstep 3\nstep 4\n"))
		c.expect("1", "2")
		time.Sleep(progressEvery - time.Nanosecond)
		c.Scan([]byte("step 5\n"))
		c.expect()
		time.Sleep(time.Nanosecond)
		c.expect("5") // although no line has come since
		c.Scan([]byte("step 6\nstep 7\n"))
		c.expect()
		c.Rank.Flush()
		c.expect("7")
		c.Rank.Flush()
		c.expect()
		c.Scan([]byte("no step\nstep 8")) // the line has no end
		c.Rank.Flush()
		time.Sleep(time.Hour)
		c.expect()
	})
}

// TestProgressOfABurst checks that the last step of a burst is reported even if nothing comes after it.
func TestProgressOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t, 0)
		for step := range 1000 {
			fmt.Fprintf(c, "step %d loss 0.5\n", step)
		}
		c.expect("0 0.5")
		time.Sleep(progressEvery)
		c.expect("999 0.5")
		time.Sleep(time.Hour)
		c.expect()
		fmt.Fprint(c, "step 1000\nstep 1001\n")
		c.expect("1000")
		fmt.Fprint(c, "step 1002\n")
		time.Sleep(progressEvery / 2)
		fmt.Fprint(c, "step 1003\n")
		c.expect()
		time.Sleep(progressEvery / 2)
		c.expect("1003")
	})
}

// TestProgressTellsTheLoss checks that a loss that becomes infinite or NaN is reported at once. When steps are thinned
// out, no loss may be lost.
func TestProgressTellsTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t, 0)
		fmt.Fprint(c, "step 0 loss 4.475\nstep 1 loss 4.5\nstep 2 loss nan\nstep 3 loss nan\nstep 4 loss inf\nstep 5 loss inf\nstep 6\n")
		c.expect("0 4.475", "2 nan", "4 inf")
		time.Sleep(progressEvery)
		c.expect("6 inf")
		fmt.Fprint(c, "step 7 loss 1.5\nstep 8\nstep 9\n")
		c.expect()
		time.Sleep(progressEvery)
		c.expect("9 1.5")
		fmt.Fprint(c, "step 10 loss nan\n")
		c.expect("10 nan")
	})
}

// TestProgressOfTwoStreams checks that one stream of a rank may report the steps and the other one the loss. The
// Trainer of Hugging Face prints a progress bar to standard error and the loss to standard output.
func TestProgressOfTwoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t, 100)
		errs := &Scanner{Rank: c.Rank}
		errs.Scan([]byte(" 45%|####5     | 45/100 [00:12<00:15,  3.61it/s]\r"))
		fmt.Fprint(c, "{'loss': 0.25, 'learning_rate': 4.9e-05, 'epoch': 2.13}\nepoch 3\n")
		errs.Scan([]byte(" 46%|####6     | 46/100 [00:12<00:15,  3.61it/s]\r"))
		c.expect("45", "45 0.25", "46")
	})
}

// Write makes data that is printed to c the next piece of the stream.
func (c *timed) Write(piece []byte) (int, error) {
	c.Scan(piece)
	return len(piece), nil
}

// TestProgressIdle checks that Idle counts from the time at which the step was first printed, and not from its last
// report.
func TestProgressIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t, 0)
		if _, ok := c.Rank.Idle(time.Now()); ok {
			t.Error("a rank without a step has made progress")
		}
		fmt.Fprint(c, "step 1\n")
		time.Sleep(time.Minute)
		fmt.Fprint(c, "step 1\n")
		if idle, ok := c.Rank.Idle(time.Now()); !ok || idle != time.Minute {
			t.Errorf("idle for %s, %t; want 1m0s", idle, ok)
		}
		fmt.Fprint(c, "step 2\n")
		if idle, _ := c.Rank.Idle(time.Now()); idle != 0 {
			t.Errorf("idle for %s after a step", idle)
		}
		time.Sleep(progressEvery) // the last timer fires in this time
	})
}

// firstPiece and largestPiece are the sizes of the first and of the largest pieces in which an agent reads the output
// of ranks.
const (
	firstPiece   = 2 << 10
	largestPiece = 256 << 10
)
