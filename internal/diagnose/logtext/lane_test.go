package logtext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/job"
)

// TestLanes checks that Lanes finds the ranks of lines, whatever word the program uses to mark them.
func TestLanes(t *testing.T) {
	for _, c := range []struct {
		name, form string // %d stands for the number of the rank
		ranks      bool
	}{
		{"word and number", "crawl %d: fetched 12 pages", true},
		{"brackets", "bwa2tsv[%d]: sample NA12870", true},
		{"after the time", "2026-03-01 10:00:00,123 [I] ens-%d: written", true},
		{"after time and gravity", "[2026-03-01 10:00:00] [INFO] [puller.%d] stored", true},
		{"part of a word", "24/05/02 11:03:12 INFO PageRankWorker%d: delta", true},
		{"a field", "2026-03-01T10:00:00Z  INFO tok::write: shard=%d bytes", true},
		{"JSON", `{"time":"2026-03-01T10:00:00Z","msg":"batch","shard":%d,"of":4}`, true},
		{"only the number", "I %d etl-sink: flushed", true},
		{"a count", "epoch %d loss 2.0", false},
		{"another count", "attempt %d of 4 failed", false},
		{"a process of a pool", "[ForkPoolWorker-%d] done", false},
	} {
		var text []string
		var want []int
		for i := range 12 {
			text, want = append(text, fmt.Sprintf(c.form, i*3%4)), append(want, i*3%4)
		}
		text, want = append(text, "Traceback (most recent call last):"), append(want, -1)
		if !c.ranks {
			want = nil
		}
		if got := logtext.Lanes(text); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
	}
	if got := logtext.Lanes(strings.Split("wave 0 begins\nwave 0 ends\nwave 1 begins\nwave 1 ends\nwave 2 begins\nwave 2 ends", "\n")); got != nil {
		t.Errorf("numbers that only grow: got %v, want none", got)
	}
}

// TestOuter checks that Read removes the times and tags that a tool has written before each line, and keeps those that
// the program has written.
func TestOuter(t *testing.T) {
	trace := "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 'x'"
	of := func(format string) string {
		var b strings.Builder
		for i := range 9 {
			fmt.Fprintf(&b, strings.ReplaceAll(format, "#", fmt.Sprint(i%3))+"step %d\n", i/3)
		}
		for l := range strings.SplitSeq(trace, "\n") {
			b.WriteString(strings.ReplaceAll(format, "#", "1") + l + "\n")
		}
		return b.String()
	}
	for _, c := range []struct {
		name, log, last string
		rank            int
	}{
		{"kubectl --timestamps", of("2026-03-01T10:00:00.123456789Z "), "KeyError: 'x'", -1},
		{"a container's log", of("2026-03-01T10:00:00.123456789Z stderr F "), "KeyError: 'x'", -1},
		{"ts", of("Mar 01 10:00:00 "), "KeyError: 'x'", -1},
		{"journald", of("Mar 01 10:00:00 n1 train[4711]: "), "KeyError: 'x'", -1},
		{"time, then srun", of("10:00:00 #: "), "KeyError: 'x'", 1},
		{"a tag of any word", of("ens.# | "), "KeyError: 'x'", 1},
		{"time, gravity and any word", of("10:00:00 INFO crawl-#: "), "KeyError: 'x'", 1},
		{"slot", of("slot #: "), "KeyError: 'x'", 1},
		{"arrow", of("# -> "), "KeyError: 'x'", 1},
		{"process and worker", of("(pid 41#, worker #) "), "KeyError: 'x'", 1},
		{"the program's own time", strings.ReplaceAll(of("10:00:00 "), "10:00:00 "+trace, trace) + "10:00:01 end\n" + trace + "\n" + trace + "\n", "KeyError: 'x'", -1},
	} {
		lines, err := logtext.Read(logtext.Origins([]string{"log"})[0], strings.NewReader(c.log), func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if l := lines[len(lines)-1]; l.Text != c.last || l.Rank != c.rank {
			t.Errorf("%s: got %q of rank %d, want %q of rank %d", c.name, l.Text, l.Rank, c.last, c.rank)
		}
	}
}

// TestFirstRank checks whether a log whose tags have local ranks shows the ranks.
func TestFirstRank(t *testing.T) {
	line := func(local int, text string) job.Line {
		l := job.Line{Rank: -1, Text: text}
		if local >= 0 {
			l.Rank = logtext.LocalRanks + local
		}
		return l
	}
	for _, c := range []struct {
		name  string
		lines []job.Line
		first int
		ok    bool
	}{
		{"torchrun's table", []job.Line{line(2, "step 1"), line(-1, "  rank      : 6 (local_rank: 2)")}, 4, true},
		{"a message", []job.Line{line(2, "RuntimeError: Rank 10, node gpu-1, device 2: nan")}, 8, true},
		{"contradiction", []job.Line{line(2, "rank 10 ready"), line(3, "rank 10 is slow")}, 0, false},
		{"nothing", []job.Line{line(2, "step 1")}, 0, false},
	} {
		if first, ok := logtext.FirstRank(c.lines); first != c.first || ok != c.ok {
			t.Errorf("%s: got %d %v, want %d %v", c.name, first, ok, c.first, c.ok)
		}
	}
}
