package agent

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

// scanned returns the progress that is found in pieces; every one is reported.
func scanned(pieces ...[]byte) (found []job.Progress) {
	p := &progress{steps: math.MaxInt, emit: func(f job.Progress) { found = append(found, f) }}
	for _, piece := range pieces {
		p.scan(piece)
	}
	p.flush()
	return found
}

// expected is what is found in the whole text, line by line.
func expected(text []byte) (found []job.Progress) {
	finer := false
	lines := bytes.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if n := len(lines); n > 0 && !bytes.HasSuffix(text, []byte("\n")) && !bytes.HasSuffix(text, []byte("\r")) {
		lines = lines[:n-1] // it has not ended
	}
	for _, line := range lines {
		if f, ok := curve.Parse(line); ok && (!f.ByEpoch || !finer) {
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

// within reports whether part is whole with some elements left out.
func within(part, whole []job.Progress) bool {
	for _, f := range part {
		i := slices.IndexFunc(whole, func(w job.Progress) bool { return reflect.DeepEqual(w, f) })
		if i < 0 {
			return false
		}
		whole = whole[i+1:]
	}
	return true
}

// training is what a trainer prints: bars that are redrawn, lines, and now and
// then one that is far longer than what is searched.
func training(steps int) []byte {
	var b bytes.Buffer
	for i := range steps {
		fmt.Fprintf(&b, " %d%%|###   | %d/%d [00:12<00:15,  3.61it/s]\r", 100*i/steps, i, steps)
		if i%7 == 0 {
			fmt.Fprintf(&b, "step %d/%d loss %.3f\n", i, steps, 1/float64(i+1))
		}
		if i%50 == 10 {
			fmt.Fprintf(&b, "%s max_steps=77\nconfig %s max step 99\n%s step %d/%d\r\n", strings.Repeat("x ", i*40), strings.Repeat("step 3", i*5), strings.Repeat("y ", i*45), i, steps)
		}
	}
	return b.Bytes()
}

// However the stream is cut, the same steps are found in it.
func TestProgressInPieces(t *testing.T) {
	text := training(300)
	want := expected(text)
	if len(want) < 300 {
		t.Fatalf("the text has %d steps, want one of each of 300 lines or more", len(want))
	}
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		for _, most := range []int{1, 7, 100, firstBuffer, scanBytes} {
			if got := scanned(cut(text, most, random)...); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, pieces of up to %d bytes: found %d steps, want %d; the first differs at %d", seed, most, len(got), len(want), differs(got, want))
			}
		}
		// Of larger pieces only the end is searched, but nothing is made up.
		for _, most := range []int{3 * scanBytes, largeBuffer} {
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
	f.Fuzz(func(t *testing.T, text []byte, most uint16, seed uint64) {
		pieces := cut(text, int(most)+1, rand.New(rand.NewPCG(seed, 2)))
		got, want := scanned(pieces...), expected(text)
		if !within(got, want) {
			t.Fatalf("found what is not in the text: %v, want of %v", got, want)
		}
		// curve looks at the end of a line before the blanks behind it, scan at the end of all.
		if int(most) < scanBytes && !bytes.Contains(text, bytes.Repeat([]byte(" "), 20)) && len(got) != len(want) {
			t.Fatalf("found %d steps, want %d", len(got), len(want))
		}
	})
}

// Lines that count steps outrank those that count epochs.
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

// The first steps are reported as they come, later ones once a second, and the
// last one in any case.
func TestProgressIsThinnedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []int64
		p := &progress{steps: 2, emit: func(f job.Progress) { steps = append(steps, f.Step) }}
		expect := func(want ...int64) {
			t.Helper()
			if !slices.Equal(steps, want) {
				t.Fatalf("reported are %d, want %d", steps, want)
			}
			steps = nil
		}
		p.scan([]byte("step 1\nstep 2\nstep 3\nstep 4\n"))
		expect(1, 2)
		time.Sleep(progressEvery - time.Nanosecond)
		p.scan([]byte("step 5\n"))
		expect()
		time.Sleep(time.Nanosecond)
		p.scan([]byte("step 6\nstep 7\n"))
		expect(6)
		p.flush()
		expect(7)
		p.flush()
		expect()
		p.scan([]byte("no step\nstep 8")) // and no end of the line
		p.flush()
		expect()
	})
}
