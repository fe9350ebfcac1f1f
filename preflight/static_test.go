package preflight

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestStatic(t *testing.T) {
	said := make(map[string]bool)
	for _, tt := range staticCases {
		t.Run(tt.name, func(t *testing.T) {
			facts := soundFacts(tt.hosts)
			tt.change(facts)
			var have []string
			for _, f := range Static(testSpec(), facts) {
				have = append(have, line(f))
				said[signatureOf(f)] = true
				checkFinding(t, f)
			}
			if !slices.Equal(have, tt.want) {
				t.Errorf("have:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
	for _, c := range Checks() {
		for _, p := range c.Problems {
			if strings.HasPrefix(c.Code, "mpi") || slices.Contains(cross, c.Code) || slices.Contains(slips, p.Signature) || slices.Contains(inImages, p.Signature) {
				continue // TestStaticMPI, TestCross, TestSlips and the tests of images show them
			}
			if c.Judge != nil && p.Category != "" && !said[p.Signature] {
				t.Errorf("no case shows %s", p.Signature)
			}
		}
	}
}

func line(f job.Finding) string {
	var category job.Category
	if f.Cause != nil {
		category = f.Cause.Category
	}
	return fmt.Sprintf("%s %s %s %s: %s", f.Check, f.Severity, category, f.Host, f.Text)
}

func signatureOf(f job.Finding) string {
	if f.Cause == nil {
		return ""
	}
	return f.Cause.Signature
}

// leftover matches a {name} that was not replaced by a value.
var leftover = regexp.MustCompile(`[^{]\{[a-z]+\}`)

// checkFinding checks what must be true of every finding.
func checkFinding(t *testing.T, f job.Finding) {
	t.Helper()
	if leftover.MatchString(f.Text) || leftover.MatchString(f.Hint) || f.Hint == "" {
		t.Errorf("text %q, hint %q", f.Text, f.Hint)
	}
	if (f.Severity == job.SeverityError) != (f.Cause != nil) && f.Check != CodeTrial && f.Check != CodeTrialRanks {
		t.Errorf("severity %s with cause %v", f.Severity, f.Cause)
	}
	if c := f.Cause; c != nil && !strings.HasPrefix(f.Check, CodeTrial) {
		if c.Retry != c.Category.Action() || c.Confidence != 1 || c.Rank != -1 || c.Host != f.Host || c.Text != f.Text || c.Artefact == "" {
			t.Errorf("cause %+v of %+v", *c, f)
		}
	}
}

func TestSyntaxEvidence(t *testing.T) {
	facts := soundFacts(2)
	facts[0].Script.Syntax, facts[0].Script.Line, facts[0].Script.Source = "invalid syntax", 3, "for x in"
	have := Static(testSpec(), facts)[0].Cause.Evidence
	want := []job.Line{{Source: job.SourceAgent, Host: "h1", Rank: -1, File: "/w/train.py", Line: 3, Text: "for x in"}}
	if !slices.Equal(have, want) {
		t.Errorf("evidence %+v, want %+v", have, want)
	}
}

func TestDifferentEvidence(t *testing.T) {
	facts := soundFacts(3)
	facts[2].Script.SHA256 = "6666"
	have := Static(testSpec(), facts)[0].Cause.Evidence
	if len(have) != 2 || have[0].Host != "h1" || have[0].Text != "SHA-256 5555" || have[1].Host != "h3" || have[1].Text != "SHA-256 6666" {
		t.Errorf("evidence %+v", have)
	}
}

func TestChecksDeclared(t *testing.T) {
	before := make(map[string]bool)
	signatures := make(map[string]bool)
	for _, c := range Checks() {
		if before[c.Code] || c.Asks == "" || len(c.Problems) == 0 {
			t.Errorf("check %q is there twice, or incomplete", c.Code)
		}
		for _, code := range c.DependsOn {
			if !before[code] {
				t.Errorf("%s depends on %q, which does not stand before it", c.Code, code)
			}
		}
		before[c.Code] = true
		for _, p := range c.Problems {
			switch {
			case signatures[p.Signature]:
				t.Errorf("signature %q is there twice", p.Signature)
			case p.Text == "" || p.Hint == "" || strings.HasSuffix(p.Text, ".") || strings.HasSuffix(p.Hint, "."):
				t.Errorf("%s: text %q, hint %q", p.Signature, p.Text, p.Hint)
			case c.Judge != nil && (p.Severity == job.SeverityError) != (p.Category != ""):
				t.Errorf("%s: severity %s, category %q", p.Signature, p.Severity, p.Category)
			case p.Category != "" && !slices.Contains(job.Categories(), p.Category):
				t.Errorf("%s: category %q is none", p.Signature, p.Category)
			case strings.ContainsRune(p.Text+p.Hint, '|'):
				t.Errorf("%s would break its table", p.Signature)
			}
			signatures[p.Signature] = true
		}
	}
	codes := strings.Fields("image image-same workdir program program-libraries program-same cuda versions mpi mpi-same script python-syntax script-same inputs clock reach checkpoint-dir checkpoint-shared checkpoint-room health known-failure trial trial-ranks trial-files")
	for _, code := range codes {
		if !before[code] {
			t.Errorf("there is no check %q", code)
		}
	}
	if len(before) != len(codes) {
		t.Errorf("there are %d checks, want %d", len(before), len(codes))
	}
}

// TestStaticManyHosts: the findings about a gang of many hosts are as short as those about few hosts.
func TestStaticManyHosts(t *testing.T) {
	facts := soundFacts(1000)
	for i := range 500 {
		facts[2*i].Inputs[0] = broken("/d/a.csv", job.ErrorMissing, "x")
	}
	have := Static(testSpec(), facts)
	want := `input "/d/a.csv" does not exist (on h1, h3, h5, h7, h9, h11, h13, h15 and 492 more: 500 of 1000 hosts)`
	if len(have) != 1 || have[0].Text != want {
		t.Errorf("have %+v", have)
	}
}
