//go:build !race

// The race detector makes this ten times slower, and there is nothing concurrent in it: make test runs
// it without.

package diagnose_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/logset"
)

// label is what is known about a case of the corpus.
type label struct {
	Failed   bool         `json:"failed"`
	Category job.Category `json:"category"`
	Rank     *int         `json:"rank"` // nil if the logs do not show it
	Ranks    []int        `json:"ranks"`
	Retry    job.Action   `json:"retry"`
	Decisive string       `json:"decisive"` // a part of the line that states the cause
	Made     string       `json:"made"`     // "run", or "documented": written after a documented format
}

// corpusCase is a job with its logs.
type corpusCase struct {
	name  string
	label label
	files []txtar.File
}

// parts has the parts of the corpus. Rules are written with the help of the part work. The part held is only measured.
// The other parts were made later. Work and held share the directory cases; each other part has a directory of its own.
var parts = []string{"work", "held", "later", "fresh", "unseen", "last", "final", "exam", "proof", "calm", "blind", "sealed", "kept", "spare", "newest"}

// corpus reads a part of the corpus. The name of a case in the directory cases decides whether it belongs to work or
// held.
func corpus(t testing.TB, part string) (cases []corpusCase) {
	t.Helper()
	dir := part
	shared := part == "work" || part == "held"
	if shared {
		dir = "cases"
	}
	paths, err := filepath.Glob("testdata/corpus/" + dir + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		c := corpusCase{name: strings.TrimSuffix(filepath.Base(path), ".txtar")}
		h := fnv.New32a()
		_, _ = h.Write([]byte(c.name))
		if shared && (part == "held") != (h.Sum32()>>8&1 == 1) {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archive := txtar.Parse(data)
		if err := json.Unmarshal(archive.Comment, &c.label); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		c.files = archive.Files
		cases = append(cases, c)
	}
	return cases
}

// diagnosed returns the cause that gangrun finds in a case.
func (c corpusCase) diagnosed(t testing.TB) job.Cause {
	t.Helper()
	var logs []logset.Log
	for _, f := range c.files {
		logs = append(logs, logset.Log{Name: f.Name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.Data)), nil }})
	}
	e, err := logset.Read(t.Context(), logs, rules.Standard(), func(string) {})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return diagnose.Logs(rules.Standard(), e)
}

// standsThere reports whether the decisive line of a cause is at the place that the cause names.
func (c corpusCase) standsThere(found job.Cause) bool {
	if len(found.Evidence) == 0 {
		return false
	}
	l := found.Evidence[len(found.Evidence)-1]
	for _, f := range c.files {
		lines := strings.Split(string(f.Data), "\n")
		if f.Name == l.File && l.Line > 0 && l.Line <= len(lines) && strings.Contains(lines[l.Line-1], strings.TrimSpace(l.Text)) {
			return true
		}
		if f.Name == l.File && l.Source == job.SourceErrorFile {
			return true
		}
	}
	return false
}

// rankRight reports whether a cause names the right rank.
func (l label) rankRight(found job.Cause) bool { return found.Rank == *l.Rank }

// score counts what gangrun finds correctly in one part of the corpus. confusion counts pairs of wanted and found
// categories.
type score struct {
	failed, run, right, ranked, rankRight, retryRight, placed int
	passed, alarms                                            int
	confusion                                                 map[[2]job.Category]int
}

func (s score) String() string {
	part := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	return fmt.Sprintf("%d failures: category %.3f, macro-F1 %.3f, root rank %.3f of %d, retry %.3f, quoted line in its place %.3f; %d of %d successes are called failures",
		s.failed, part(s.right, s.failed), s.macroF1(), part(s.rankRight, s.ranked), s.ranked, part(s.retryRight, s.failed), part(s.placed, s.failed), s.alarms, s.passed)
}

// macroF1 returns the mean of the F1 scores of the categories that occur in labels.
func (s score) macroF1() float64 {
	wanted, found := map[job.Category]int{}, map[job.Category]int{}
	for k, n := range s.confusion {
		wanted[k[0]] += n
		found[k[1]] += n
	}
	sum, n := 0.0, 0
	for c, w := range wanted {
		if c == "" {
			continue
		}
		n++
		sum += 2 * float64(s.confusion[[2]job.Category{c, c}]) / float64(w+found[c])
	}
	return sum / float64(max(n, 1))
}

// measure diagnoses one part of the corpus. It calls report for each case with something wrong.
func measure(t testing.TB, part string, report func(c corpusCase, found job.Cause, wrong []string)) score {
	s := score{confusion: map[[2]job.Category]int{}}
	for _, c := range corpus(t, part) {
		found, wrong := c.diagnosed(t), []string(nil)
		s.confusion[[2]job.Category{c.label.Category, found.Category}]++
		count := func(what string, ok bool, n *int) {
			if ok {
				*n++
			} else {
				wrong = append(wrong, what)
			}
		}
		if !c.label.Failed {
			s.passed++
			if found.Category != "" {
				s.alarms++
				wrong = append(wrong, "false alarm")
			}
		} else {
			s.failed++
			if c.label.Made == "run" {
				s.run++
			}
			count("category", found.Category == c.label.Category, &s.right)
			if c.label.Rank != nil {
				s.ranked++
				count("rank", c.label.rankRight(found), &s.rankRight)
			}
			count("retry", found.Category != "" && found.Retry == c.label.Retry, &s.retryRight)
			count("place", c.standsThere(found), &s.placed)
		}
		if len(wrong) > 0 && report != nil {
			report(c, found, wrong)
		}
	}
	return s
}

// wrongIn returns a function that logs a case with something wrong. It returns nil unless CORPUS names the part.
func wrongIn(t *testing.T, part string) func(c corpusCase, found job.Cause, wrong []string) {
	if os.Getenv("CORPUS") != part {
		return nil
	}
	return func(c corpusCase, found job.Cause, wrong []string) {
		rank := "-"
		if c.label.Rank != nil {
			rank = fmt.Sprint(*c.label.Rank)
		}
		t.Logf("%s: %s\n  want %s rank %s retry %s: %s\n  got  %s (%s) rank %d retry %s: %s", c.name, strings.Join(wrong, ", "),
			c.label.Category, rank, c.label.Retry, c.label.Decisive, found.Category, found.Signature, found.Rank, found.Retry, found.Text)
	}
}

const (
	figuresPage  = "../../docs/diagnosis.md"
	figuresBegin = "<!-- figures: written by UPDATE=1 go test -run TestDocumentDiagnosis ./internal/diagnose -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
)

// TestDocumentDiagnosis checks that docs/diagnosis.md has the figures of the corpus. With CORPUS=work, it logs the
// cases of the part work that have something wrong.
func TestDocumentDiagnosis(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s| | %s |\n|---|%s\n", figuresBegin, strings.Join(parts, " | "), strings.Repeat("---|", len(parts)))
	var all []score
	for _, name := range parts {
		s := measure(t, name, wrongIn(t, name))
		t.Logf("%s: %s", name, s)
		all = append(all, s)
	}
	row := func(what string, figure func(score) string) {
		fmt.Fprintf(&b, "| %s |", what)
		for _, s := range all {
			fmt.Fprintf(&b, " %s |", figure(s))
		}
		b.WriteString("\n")
	}
	part := func(n, of int) string { return fmt.Sprintf("%.3f", float64(n)/float64(max(of, 1))) }
	row("failed jobs (of these, logs made by running a program that fails)", func(s score) string { return fmt.Sprintf("%d (%d)", s.failed, s.run) })
	row("category right", func(s score) string { return part(s.right, s.failed) })
	row("macro-F1 of the categories", func(s score) string { return fmt.Sprintf("%.3f", s.macroF1()) })
	row("rank at fault right (of this number of jobs)", func(s score) string { return fmt.Sprintf("%s (%d)", part(s.rankRight, s.ranked), s.ranked) })
	row("advice on a retry right", func(s score) string { return part(s.retryRight, s.failed) })
	row("gangrun quotes a line correctly, with its place in the log", func(s score) string { return part(s.placed, s.failed) })
	row("successful jobs that are called failed", func(s score) string { return fmt.Sprintf("%d of %d", s.alarms, s.passed) })
	b.WriteString("\nWhich category gangrun took for which other one, at least twice in all sets together:\n\n| category | taken for | times |\n|---|---|---|\n")
	wrong := map[[2]job.Category]int{}
	for _, s := range all {
		for k, n := range s.confusion {
			if k[0] != k[1] {
				wrong[k] += n
			}
		}
	}
	name := func(c job.Category, none string) string { return cmp.Or(string(c), none) }
	for _, k := range slices.SortedFunc(maps.Keys(wrong), func(a, b [2]job.Category) int {
		return cmp.Or(cmp.Compare(wrong[b], wrong[a]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		if wrong[k] > 1 {
			fmt.Fprintf(&b, "| %s | %s | %d |\n", name(k[0], "(successful)"), name(k[1], "(no cause found)"), wrong[k])
		}
	}
	b.WriteString(figuresEnd)
	page, err := os.ReadFile(figuresPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), figuresBegin)
	_, after, ok2 := strings.Cut(rest, figuresEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the figures", figuresPage)
	}
	want := before + b.String() + after
	if string(page) == want {
		return
	}
	if os.Getenv("UPDATE") != "1" {
		t.Fatalf("%s does not have the figures of today: run UPDATE=1 go test -run TestDocumentDiagnosis ./internal/diagnose", figuresPage)
	}
	if err := os.WriteFile(figuresPage, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
