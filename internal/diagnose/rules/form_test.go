package rules

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestRuleForm checks that each rule has the fields that it needs, in the right form.
func TestRuleForm(t *testing.T) {
	category := map[string]job.Category{}
	meaning := map[string]bool{}
	slug := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, r := range written() {
		if c, ok := category[r.Signature]; ok && c != r.Category {
			t.Errorf("signature %s belongs to %s and %s", r.Signature, c, r.Category)
		}
		if category[r.Signature] == "" && r.Meaning == "" {
			t.Errorf("the first rule of signature %s has no meaning", r.Signature)
		}
		if meaning[r.Signature] && r.Meaning != "" {
			t.Errorf("signature %s has two meanings", r.Signature)
		}
		category[r.Signature], meaning[r.Signature] = r.Category, true
		if !slug.MatchString(r.Signature) || r.Hint == "" || r.Confidence <= 0 || r.Confidence > 1 || !slices.Contains(job.Categories(), r.Category) {
			t.Errorf("rule %s: signature, hint, confidence or category", r.Signature)
		}
		for _, n := range r.Needles {
			if len(n) < 4 || n != strings.ToLower(n) {
				t.Errorf("rule %s: needle %q is short or not in lower case", r.Signature, n)
			}
		}
		if !r.Ending() && len(r.Needles)+len(r.Classes)+len(r.Ends.Reasons) == 0 {
			t.Errorf("rule %s can never fit", r.Signature)
		}
		if r.Ending() && r.Text == "" {
			t.Errorf("rule %s is about an end and has no text", r.Signature)
		}
	}
	for _, c := range job.Categories() {
		if meanings[c] == "" {
			t.Errorf("category %s is not described", c)
		}
	}
}
