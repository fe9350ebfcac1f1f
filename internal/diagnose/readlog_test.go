package diagnose

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

func TestReadLogNames(t *testing.T) {
	for name, want := range map[string]string{
		"rank-0003.err":                      "3 stderr",
		"rank-0003.out":                      "3 stdout",
		"/runs/x/attempts/1/rank-12.err":     "12 stderr",
		"logs/1/rank.3/stderr":               "3 stderr",
		"/tmp/none_x/attempt_0/5/stderr.log": "5 stderr",
		"train_rank_2.log":                   "2 stdout",
		"slurm-123.out":                      "-1 stdout",
		"job.err":                            "-1 stderr",
		"frank-3.log":                        "-1 stdout",
		"rank-99999999999.err":               "-1 stderr",
		"":                                   "-1 stdout",
	} {
		lines, err := readLog(name, strings.NewReader("hello\n"))
		if err != nil || len(lines) != 1 {
			t.Fatal(lines, err)
		}
		if got := fmt.Sprint(lines[0].Rank, " ", lines[0].Source); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestReadLogTags(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"mpirun", "[1,3]<stderr>: a\n[1,0][n2:77]<stdout>:b\nplain\n", "3//stderr/a 0/n2/stdout/b -1//stdout/plain"},
		{"torch", "[rank3]: a\nplain\n", "3//stdout/a -1//stdout/plain"},
		{"gangrun", "gangrun: run x\n[3 h2] a\n[0 h1] b\n[3 h2] c\n", "-1//stdout/gangrun: run x 3/h2/stdout/a 0/h1/stdout/b 3/h2/stdout/c"},
		{"hydra", "[0] a\n[1] b\n[0] c\n", "0//stdout/a 1//stdout/b 0//stdout/c"},
		{"srun", "0: a\n1: b\n0: c\nsrun: error: n1: task 1: Killed\n", "0//stdout/a 1//stdout/b 0//stdout/c -1//stdout/srun: error: n1: task 1: Killed"},
		{"srun, wide", " 0: a\n10: b\n 0: c\n", "0//stdout/a 10//stdout/b 0//stdout/c"},
		{"a list", "1: a\n2: b\n3: c\n4: d\n", "-1//stdout/1: a -1//stdout/2: b -1//stdout/3: c -1//stdout/4: d"},
		{"some lines", "0: a\n1: b\n0: c\nd\ne\n", "-1//stdout/0: a -1//stdout/1: b -1//stdout/0: c -1//stdout/d -1//stdout/e"},
		{"too few", "[2 GPUs] a\n", "-1//stdout/[2 GPUs] a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, err := readLog("x.log", strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range lines {
				got = append(got, fmt.Sprintf("%d/%s/%s/%s", l.Rank, l.Host, l.Source, l.Text))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
}

func TestReadLogLines(t *testing.T) {
	text := "a\r\n1%\r2%\r\n3%\r4%\n\n" + strings.Repeat("x", 100_000) + "\n" + strings.Repeat("y", 100_000) + "\rz\nlast"
	for name, in := range map[string]io.Reader{"whole": strings.NewReader(text), "a byte at a time": iotest.OneByteReader(strings.NewReader(text))} {
		lines, err := readLog("x.log", in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, l := range lines {
			if l.Line != i+1 || l.File != "x.log" {
				t.Errorf("%s: line %d of %s", name, l.Line, l.File)
			}
			got = append(got, l.Text)
		}
		if s := strings.Join(got, "|"); s != "a|2%|4%||"+strings.Repeat("x", logtext.KeepBytes)+"|z|last" {
			t.Errorf("%s: %.100s", name, s)
		}
	}
}

// long returns a log of n steps with a traceback at line 100.
func long(n int) io.Reader {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if i == 100 {
			fmt.Fprintln(&b, raise("ValueError: bad label 11"))
		}
		fmt.Fprintf(&b, "step %d/%d loss 1.0\n", i, n)
	}
	return strings.NewReader(b.String())
}

func TestReadLogBounds(t *testing.T) {
	lines, err := readLog("x.log", long(50_000))
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) > logtext.KeepLast+logtext.Ahead+logtext.Behind+10 || lines[len(lines)-1].Text != "step 50000/50000 loss 1.0" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1].Text)
	}
	// All lines around the early sign are kept, in order.
	want := strings.Split(raise("ValueError: bad label 11"), "\n")
	for i, l := range lines {
		if l.Text == want[0] {
			for j, w := range want {
				if lines[i+j].Text != w || lines[i+j].Line != 100+j {
					t.Errorf("line %d is %q, want %q", lines[i+j].Line, lines[i+j].Text, w)
				}
			}
			if c := Logs(rules.Standard(), job.Evidence{Lines: lines}); c.Looks != job.LooksSuccessful {
				t.Errorf("%s, looks %q", c.Signature, c.Looks)
			}
			return
		}
	}
	t.Error("the early traceback is not kept")
}

// TestReadLogOfSigns checks that a log that consists of signs is bounded, too.
func TestReadLogOfSigns(t *testing.T) {
	lines, err := readLog("x.log", strings.NewReader(strings.Repeat("x: Connection reset by peer\n", 30_000)))
	if err != nil || len(lines) != logtext.KeepLast+logtext.KeepEarly || lines[0].Line != 1 {
		t.Errorf("%d lines, first %d, %v", len(lines), lines[0].Line, err)
	}
}

func TestReadLogError(t *testing.T) {
	broken := errors.New("broken")
	if _, err := readLog("x.log", io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkReadLog(b *testing.B) {
	text := strings.Repeat("2024-05-01 12:33:01,123 INFO trainer.py:88 - step 15 | loss 1.25 | lr 0.1\n", 100_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := readLog("x.log", strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiagnose(b *testing.B) {
	g := four()
	for rank := range 4 {
		for i := range 25_000 {
			g.Lines = append(g.Lines, job.Line{Source: job.SourceStdout, Host: host(rank), Rank: rank, Line: i, Time: at(float64(i)), Text: "2024-05-01 12:33:01,123 INFO trainer.py:88 - step 15 | loss 1.25 | lr 0.1"})
		}
	}
	g.says(1, 30_000, raise("ValueError: bad label 11")).says(0, 30_001, closed).exit(0, 30_002, failed).exit(1, 30_003, failed)
	for b.Loop() {
		if c := Diagnose(g.Evidence); c.Signature != "python-value-error" {
			b.Fatal(c.Signature)
		}
	}
}
