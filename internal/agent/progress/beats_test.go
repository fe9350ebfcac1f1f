package progress

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// beating returns a rank, its heartbeats, and the file to which its program writes them.
func beating(t *testing.T) (*Rank, *Beats, *os.File) {
	t.Helper()
	r := &Rank{Steps: 1 << 30, Emit: func(job.Progress) {}}
	b, program, err := NewBeats(r, filepath.Join(t.TempDir(), "heartbeat"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = program.Close(), b.Close() })
	return r, b, program
}

func write(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// check compares the latest step, the moves and the beats of a rank.
func check(t *testing.T, r *Rank, step, moves, beats int64) {
	t.Helper()
	s := r.Sample()
	got := int64(-1)
	if s.Latest != nil {
		got = s.Latest.Step
	}
	if got != step || s.Moves != moves || s.Beats != beats {
		t.Errorf("step %d, %d moves, %d beats; want %d, %d, %d", got, s.Moves, s.Beats, step, moves, beats)
	}
}

func TestBeats(t *testing.T) {
	r, b, program := beating(t)
	b.Poll()
	check(t, r, -1, 0, 0)
	write(t, program, "gangrun: progress 3 total=10 loss=0.5 epoch=1 phase=warm\ngangrun: pro")
	b.Poll()
	check(t, r, 3, 1, 1)
	if p := r.Sample().Latest; p.Total != 10 || p.Epoch != 1 || *p.Loss != 0.5 {
		t.Errorf("latest is %+v", p)
	}
	write(t, program, "gress 3\nhello\ngangrun: progress\ngangrun: progress -1\ngangrun: progress 4 lr=0.5 loss=2 bad=NaN\n")
	b.Poll()
	check(t, r, 4, 2, 3)
	if p := r.Sample().Latest; len(p.Metrics) != 1 || p.Metrics["lr"] != 0.5 || *p.Loss != 2 {
		t.Errorf("the metrics of a heartbeat: %+v", p)
	}
	(&Scanner{Rank: r}).Scan([]byte("step 99 loss 1\n"))
	check(t, r, 4, 2, 3) // printed progress no longer counts
}

// TestBeatsTruncated checks a program that truncates the file before each write, as a redirection of a shell does.
func TestBeatsTruncated(t *testing.T) {
	r, b, program := beating(t)
	for step := range int64(5) {
		if err := program.Truncate(0); err != nil {
			t.Fatal(err)
		}
		write(t, program, fmt.Sprintf("gangrun: progress %d\n", step))
		// The clock of the file system may not advance between two writes, so the test sets the time itself.
		if err := os.Chtimes(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), time.Time{}, time.Unix(step, 0)); err != nil {
			t.Fatal(err)
		}
		b.Poll()
		check(t, r, step, step+1, step+1)
	}
}

// TestBeatsBounded checks that little of what the program writes stays in memory, and that its last line counts.
func TestBeatsBounded(t *testing.T) {
	r, b, program := beating(t)
	line := "gangrun: progress 7 " + strings.Repeat("x", 1000) + "\n"
	for range 8 {
		write(t, program, strings.Repeat(line, 1<<10))
		b.Poll()
	}
	write(t, program, strings.Repeat("y", 3*scanBytes))
	b.Poll()
	write(t, program, "\ngangrun: progress 8\n")
	b.Poll()
	if s := r.Sample(); s.Latest.Step != 8 {
		t.Errorf("the latest step is %d, want 8", s.Latest.Step)
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(program.Fd()), &info); err != nil {
		t.Fatal(err)
	}
	if held := info.Blocks * 512; held > 2*punchBytes+pollBytes {
		t.Errorf("%d of %d bytes are in memory", held, info.Size)
	}
}

// TestBeatsAlone checks that the program can still write when the agent no longer reads.
func TestBeatsAlone(t *testing.T) {
	_, b, program := beating(t)
	write(t, program, "gangrun: progress 1\n")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	check(t, b.Rank, 1, 1, 1)
	write(t, program, string(bytes.Repeat([]byte("gangrun: progress 2\n"), 10000)))
	b.Poll()
	check(t, b.Rank, 1, 1, 1)
}

func TestTouch(t *testing.T) {
	r, b, _ := beating(t)
	b.Touch()
	check(t, r, -1, 0, 0)
	if err := os.WriteFile(b.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Touch()
	b.Touch()
	check(t, r, -1, 0, 1)
	if err := os.Chtimes(b.Path, time.Time{}, time.Unix(5, 0)); err != nil {
		t.Fatal(err)
	}
	b.Touch()
	check(t, r, -1, 0, 2)
}

func TestSampleLines(t *testing.T) {
	r := &Rank{Emit: func(job.Progress) {}}
	out, errs := &Scanner{Rank: r}, &Scanner{Rank: r}
	out.Scan([]byte("one\ntwo\nthr"))
	errs.Scan([]byte("ee\n"))
	if s := r.Sample(); s.Lines != 3 || s.First.IsZero() || s.Latest != nil {
		t.Errorf("got %+v, want 3 lines", s)
	}
}
