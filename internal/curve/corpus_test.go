package curve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// labelled is a line of a log in the corpus. want says what the line reports.
type labelled struct{ want, line string }

// corpus returns the logs in a directory of testdata, by their names. See testdata/README.md.
func corpus(t testing.TB, dir string) map[string][]labelled {
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.log"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs in testdata/%s: %v", dir, err)
	}
	logs := map[string][]labelled{}
	escapes := strings.NewReplacer(`\r`, "\r", `\e`, "\x1b", `\b`, "\b")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".log")
		for line := range strings.Lines(string(text)) {
			want, line, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if !ok {
				t.Fatalf("%s: %q has no label", path, line)
			}
			logs[name] = append(logs[name], labelled{want, escapes.Replace(line)})
		}
	}
	return logs
}

// label writes a progress in the form of the corpus: step/total, epoch, loss. It omits the loss and the epoch
// unless they are asked for.
func label(p job.Progress, ok, loss, epoch bool) string {
	if !ok {
		return "."
	}
	text := fmt.Sprint(p.Step)
	if p.Total > 0 {
		text += fmt.Sprintf("/%d", p.Total)
	}
	if epoch && p.Epoch >= 0 {
		text += fmt.Sprintf(" e%d", p.Epoch)
	}
	if loss && p.Loss != nil {
		text += fmt.Sprintf(" l%v", *p.Loss)
	}
	return text
}

// score counts how many lines of a corpus were read correctly.
type score struct {
	right, wrong int // lines of progress that were read correctly, and with a wrong value
	missed, made int // lines of progress that were not read, and other lines that were read as progress
}

// read counts the lines of a log. It calls differs for each line that was not read as its label says.
func (s *score) read(log []labelled, differs func(at int, got string)) {
	var r Reader
	for i, l := range log {
		p, ok := r.Line([]byte(l.line))
		got := label(p, ok, strings.Contains(l.want, " l"), strings.Contains(l.want, " e"))
		switch {
		case got == l.want:
			if ok {
				s.right++
			}
			continue
		case !ok:
			s.missed++
		case l.want == ".":
			s.made++
		default:
			s.wrong++
		}
		differs(i, got)
	}
}

func TestCorpus(t *testing.T) {
	for name, log := range corpus(t, "corpus") {
		t.Run(name, func(t *testing.T) {
			var s score
			s.read(log, func(i int, got string) {
				t.Errorf("line %d: got %q, want %q: %q", i+1, got, log[i].want, log[i].line)
			})
		})
	}
}

// BenchmarkCorpus parses the logs of the corpus line by line.
func BenchmarkCorpus(b *testing.B) {
	var lines [][]byte
	size := 0
	for _, log := range corpus(b, "corpus") {
		for _, l := range log {
			lines = append(lines, []byte(l.line))
			size += len(l.line)
		}
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		var r Reader
		for _, line := range lines {
			r.Line(line)
		}
	}
}

// TestHeldOut measures the recall and the precision on logs that are not in the corpus, and that were
// collected after the scanner had been written. The figures may not become worse. testdata/README.md has the
// figures of the first measurement.
func TestHeldOut(t *testing.T) {
	for dir, least := range map[string]struct{ recall, precision float64 }{"heldout": {0.96, 1}, "wild": {0.95, 0.91}} {
		var s score
		lines := 0
		for name, log := range corpus(t, dir) {
			lines += len(log)
			s.read(log, func(i int, got string) {
				t.Logf("%s, line %d: got %q, want %q: %q", name, i+1, got, log[i].want, log[i].line)
			})
		}
		found, there := s.right+s.wrong+s.made, s.right+s.wrong+s.missed
		recall, precision := float64(s.right)/float64(there), float64(s.right)/float64(found)
		t.Logf("%s: %d lines, %d of them progress: %d right, %d with another value, %d missed; %d others taken for progress; recall %.3f, precision %.3f",
			dir, lines, there, s.right, s.wrong, s.missed, s.made, recall, precision)
		if recall < least.recall || precision < least.precision {
			t.Errorf("%s: recall %.3f and precision %.3f, want at least %.2f and %.2f", dir, recall, precision, least.recall, least.precision)
		}
	}
}
