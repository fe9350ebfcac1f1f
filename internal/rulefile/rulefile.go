// Package rulefile reads rules of diagnosis that users have written in YAML. The section "Rules of your
// own" of docs/add-a-rule.md describes the form of such a file.
package rulefile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/yamldoc"
)

// MaxBytes is the size of the largest file of rules.
const MaxBytes = 1 << 20

// File is a file of rules.
type File struct {
	Rules   []rule.Rule
	Samples []Samples // one for each rule
}

// Samples are texts by which a rule is tested.
type Samples struct {
	Line int      // of the rule in the file
	Yes  []string // logs in which the rule must find the cause
	No   []string // logs in which the rule must not find the cause
}

// written is a rule as a file has it.
type written struct {
	Category, Signature, Meaning, Hint, Text, Retry string

	Confidence float64
	Classes    []string
	Needles    []string
	Traits     []string
	Samples    struct{ Yes, No []string }
	Patterns   patterns `yaml:",inline"`
}

// patterns are the regular expressions of a rule.
type patterns struct{ Match, Find, Unless, Context string }

// The names that a rule may have in a file.
var (
	names  = []string{"category", "signature", "meaning", "hint", "text", "retry", "confidence", "classes", "needles", "match", "find", "unless", "context", "traits", "samples"}
	traits = map[string]rule.Traits{"kernel": rule.Kernel, "cascade": rule.Cascade, "peer": rule.Peer, "weak": rule.Weak, "generic": rule.Generic,
		"continued": rule.Continued, "verdict": rule.Verdict, "mute": rule.Mute}
	slug = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
)

// Error lists the mistakes in a file of rules.
type Error struct {
	Name     string
	Mistakes []string
}

// Error returns all mistakes.
func (e *Error) Error() string {
	return fmt.Sprintf("the rules in %q: %s", e.Name, strings.Join(e.Mistakes, "; "))
}

// Hint says where the form of the file is described.
func (e *Error) Hint() string {
	return "docs/add-a-rule.md has the form; gangrun diagnose --check-rules FILE checks it"
}

// Parse reads a file of rules. name is the path of the file, and data its contents. The error is an *Error
// with all mistakes and their lines.
func Parse(name string, data []byte) (File, error) {
	bad := &Error{Name: name}
	root, wrong := yamldoc.Parse(data, "a file of rules", MaxBytes)
	if wrong != nil {
		bad.add(wrong.Line, "%s", wrong.Text)
		return File{}, bad
	}
	var f File
	list := listOf(root, bad)
	if list == nil {
		return File{}, bad
	}
	for _, n := range list.Content {
		n = yamldoc.Follow(n)
		if n.Kind != yaml.MappingNode {
			bad.add(n.Line, "a rule is a mapping, this is %s", yamldoc.Kind(n, "a text"))
			continue
		}
		yamldoc.Entries(n, "a rule", func(key string, k, _ *yaml.Node) {
			if !slices.Contains(names, key) {
				bad.add(k.Line, "a rule has no %q%s", key, suggest.DidYouMean(key, names))
			}
		}, func(at *yaml.Node, e *yamldoc.Error) { bad.add(at.Line, "%s", e.Text) })
		var w written
		if err := n.Decode(&w); err != nil {
			bad.add(n.Line, "%s", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		f.Rules = append(f.Rules, w.rule(n.Line, bad))
		f.Samples = append(f.Samples, Samples{n.Line, w.Samples.Yes, w.Samples.No})
	}
	if len(bad.Mistakes) > 0 {
		return File{}, bad
	}
	return f, nil
}

// listOf returns the list of rules in a document.
func listOf(root *yaml.Node, bad *Error) (list *yaml.Node) {
	if root == nil {
		bad.add(1, "the file is empty: write rules: and a list below it")
		return nil
	}
	if root = yamldoc.Follow(root); root.Kind != yaml.MappingNode {
		bad.add(root.Line, "the file begins with %s: write rules: and a list below it", yamldoc.Kind(root, "a text"))
		return nil
	}
	yamldoc.Entries(root, "a file of rules", func(key string, k, v *yaml.Node) {
		switch v = yamldoc.Follow(v); {
		case key != "rules":
			bad.add(k.Line, "%q is not known here%s", key, suggest.DidYouMean(key, []string{"rules"}))
		case v.Kind != yaml.SequenceNode:
			bad.add(v.Line, "rules is a list, this is %s", yamldoc.Kind(v, "a text"))
		default:
			list = v
		}
	}, func(at *yaml.Node, e *yamldoc.Error) { bad.add(at.Line, "%s", e.Text) })
	if list == nil && len(bad.Mistakes) == 0 {
		bad.add(root.Line, "there are no rules: write rules: and a list below it")
	}
	return list
}

func (e *Error) add(line int, format string, args ...any) {
	e.Mistakes = append(e.Mistakes, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// rule checks a rule and returns it.
func (w written) rule(line int, bad *Error) rule.Rule {
	r := rule.Rule{
		Category: job.Category(w.Category), Signature: w.Signature, Meaning: w.Meaning, Hint: w.Hint, Text: w.Text, Retry: job.Action(w.Retry),
		Confidence: w.Confidence, Classes: w.Classes, Needles: w.Needles,
	}
	if !slices.Contains(job.Categories(), r.Category) {
		bad.add(line, "there is no category %q%s", w.Category, suggest.DidYouMean(w.Category, texts(job.Categories())))
	}
	if !slug.MatchString(w.Signature) {
		bad.add(line, "the signature %q is not words in lower case with hyphens between them", w.Signature)
	}
	if w.Hint == "" {
		bad.add(line, "the rule has no hint: say what to do about the failure")
	}
	if r.Retry != "" && !slices.Contains(job.Actions(), r.Retry) {
		bad.add(line, "retry is %s, not %q", text.Or(texts(job.Actions())), w.Retry)
	}
	switch {
	case w.Confidence == 0:
		r.Confidence = 0.9
	case w.Confidence < 0.1 || w.Confidence > 1:
		bad.add(line, "confidence is from 0.1 to 1, not %v", w.Confidence)
	}
	if len(w.Classes)+len(w.Needles) == 0 {
		bad.add(line, "the rule has neither classes nor needles")
	}
	for _, n := range w.Needles {
		if len(n) < 4 || strings.ToLower(n) != n {
			bad.add(line, "the needle %q is shorter than 4 bytes, or not in lower case", n)
		}
	}
	for _, p := range []struct {
		name, text string
		into       **textmatch.Pattern
	}{{"match", w.Patterns.Match, &r.Match}, {"find", w.Patterns.Find, &r.Find}, {"unless", w.Patterns.Unless, &r.Unless}, {"context", w.Patterns.Context, &r.Context}} {
		if p.text == "" {
			continue
		}
		if _, err := regexp.Compile(p.text); err != nil {
			bad.add(line, "%s is no regular expression: %v", p.name, err)
			continue
		}
		*p.into = textmatch.New(p.text)
	}
	for _, name := range w.Traits {
		t, ok := traits[name]
		if !ok {
			bad.add(line, "there is no trait %q%s", name, suggest.DidYouMean(name, traitNames()))
		}
		r.Traits |= t
	}
	return r
}

func traitNames() (all []string) {
	for name := range traits {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func texts[T ~string](all []T) (out []string) {
	for _, t := range all {
		out = append(out, string(t))
	}
	return out
}

// Check tests the rules of a file with their samples. name is the path of the file. diagnose returns the
// signature of the cause that it finds in a log. The error is an *Error that lists the samples with a wrong
// result, and the rules without samples.
func (f File) Check(name string, diagnose func(log string) (signature string)) error {
	bad := &Error{Name: name}
	for i, s := range f.Samples {
		want := f.Rules[i].Signature
		if len(s.Yes) == 0 || len(s.No) == 0 {
			bad.add(s.Line, "the rule %s lacks samples: yes and no", want)
		}
		for _, log := range s.Yes {
			if got := diagnose(log); got != want {
				bad.add(s.Line, "a sample of %s gives %q: %q", want, got, text.Clip(text.Printable(log), 100))
			}
		}
		for _, log := range s.No {
			if diagnose(log) == want {
				bad.add(s.Line, "a text that must not fit %s does: %q", want, text.Clip(text.Printable(log), 100))
			}
		}
	}
	if len(bad.Mistakes) > 0 {
		return bad
	}
	return nil
}
