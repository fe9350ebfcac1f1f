package rulefile

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

const good = `rules:
- category: disk-full
  signature: bucket-quota
  hint: delete old objects
  classes: [QuotaError]
  find: "bucket '(?P<artefact>[^']+)'"
  traits: [generic, weak]
  samples: {yes: [full], no: [empty]}
`

func TestParse(t *testing.T) {
	f, err := Parse("r.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	r := f.Rules[0]
	if r.Category != job.DiskFull || r.Signature != "bucket-quota" || r.Confidence != 0.9 || !r.Is(rule.Weak) || !r.Is(rule.Generic) || r.Is(rule.Cascade) || r.Find == nil || r.Match != nil {
		t.Errorf("%+v", r)
	}
	if err := f.Check("r.yaml", func(log string) string { return map[string]string{"full": "bucket-quota"}[log] }); err != nil {
		t.Error(err)
	}
	err = f.Check("r.yaml", func(string) string { return "bucket-quota" })
	if err == nil || !strings.Contains(err.Error(), `line 2: a text that must not fit bucket-quota does: "empty"`) {
		t.Error(err)
	}
	err = f.Check("r.yaml", func(string) string { return "io-error" })
	if err == nil || !strings.Contains(err.Error(), `a sample of bucket-quota gives "io-error": "full"`) {
		t.Error(err)
	}
}

// TestParseMistakes: every mistake is named, with its line.
func TestParseMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "line 1: the file is empty",
		"- a":               "line 1: the file begins with a list",
		"rulez: []":         `line 1: "rulez" is not known here, did you mean "rules"?`,
		"rules: 7":          "line 1: rules is a list",
		"rules: [7]":        "line 1: a rule is a mapping",
		"{}":                "there are no rules",
		"rules:\n- a: &b c": `line 2: a rule has no "a"`,
		strings.Replace(good, "disk-full", "disc-full", 1):                     `there is no category "disc-full", did you mean "disk-full"?`,
		strings.Replace(good, "bucket-quota", "Bucket", 1):                     `the signature "Bucket" is not words in lower case`,
		strings.Replace(good, "  hint: delete old objects\n", "", 1):           "the rule has no hint",
		strings.Replace(good, "  classes: [QuotaError]\n", "", 1):              "neither classes nor needles",
		strings.Replace(good, "classes: [QuotaError]", "needles: [Full]", 1):   `the needle "Full" is shorter than 4 bytes, or not in lower case`,
		strings.Replace(good, "(?P<artefact>", "(?P<artefact", 1):              "find is no regular expression",
		strings.Replace(good, "weak", "weka", 1):                               `there is no trait "weka", did you mean "weak"?`,
		strings.Replace(good, "  hint:", "  retry: always\n  hint:", 1):        `retry is never, once, again or elsewhere, not "always"`,
		strings.Replace(good, "  hint:", "  confidence: 7\n  hint:", 1):        "confidence is from 0.1 to 1, not 7",
		strings.Replace(good, "  hint:", "  signature: other\n  hint:", 1):     "stands here and on line",
		strings.Replace(good, "classes: [QuotaError]", "classes: {a: [b]}", 1): "line",
	} {
		_, err := Parse("r.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("rules:\n- *a")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("r.yaml", []byte(text))
		if err == nil && len(file.Rules) != len(file.Samples) {
			t.Errorf("%d rules, %d samples", len(file.Rules), len(file.Samples))
		}
	})
}
