package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
	"github.com/gangrun/gangrun/internal/yamldoc"
)

// parted describes a field with a value for each of some names. The value of the field is one word for all names, or a
// word for each name. The latter is a mapping, or a text with NAME=WORD and commas between.
type parted struct {
	names  []string
	noun   string // what a name is, as in "level to wait for"
	plural string
	part   string // the form of a part in a text, as in "LEVEL=TIME"
	wants  string // what a word must be
	hint   string
	wrong  func(name, word string) *fault // says what is wrong with a word
}

// parted returns the description of a field of the kind Patience or EarlyStop.
func (f *Field) parted() parted {
	if f.Kind == EarlyStop {
		return parted{job.CurveKinds(), "verdict", "verdicts", "VERDICT=ACTION", "off, advise or stop",
			"write it as in early-stop: advise or early-stop: {plateau: stop, flat: off}", actionFault}
	}
	all := texts(job.Localities())
	return parted{all[:len(all)-1], "level to wait for", "levels to wait for", "LEVEL=TIME", "a duration with a unit, as in 2m, or " + job.Strict,
		"write it as in patience: 2m, patience: strict or patience: {island: 10m, host: 2m}", waitFault} // no level is wider
}

// nameFault returns what is wrong with a name, or nil.
func (p parted) nameFault(field, name string) *fault {
	if slices.Contains(p.names, name) {
		return nil
	}
	bad := faultf("", "%s names %s, which is no %s%s", field, quote(name), p.noun, suggest.DidYouMean(name, p.names))
	if suggest.Nearest(name, p.names) == "" {
		bad.hint = "the " + p.plural + " are: " + strings.Join(p.names, ", ")
	}
	return bad
}

// waitFault returns what is wrong with the waiting time for a level, or nil.
func waitFault(name, text string) *fault {
	if text == job.Strict {
		return nil
	}
	if unit := noUnit(name, text); unit != nil {
		return unit
	}
	if _, err := job.ParseDuration(text); err != nil {
		return faultf("", "%s wants a duration with a unit, as in 2m, or %s, not %s%s", name, job.Strict, quote(text), suggest.DidYouMean(text, []string{job.Strict}))
	}
	return nil
}

// actionFault returns what is wrong with the action for a verdict, or nil.
func actionFault(name, text string) *fault {
	actions := texts(job.EarlyActions())
	if slices.Contains(actions, text) {
		return nil
	}
	return faultf("", "%s wants off, advise or stop, not %s%s", name, quote(text), suggest.DidYouMean(text, actions))
}

// parts checks the text form: one word for all names, or NAME=WORD with commas between.
func (f *Field) parts(text string) *fault {
	p := f.parted()
	if !strings.Contains(text, "=") {
		return p.wrong(f.Name, text)
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, word, ok := strings.Cut(part, "=")
		if !ok {
			return faultf("", "%s wants %s between commas, not %s", f.Name, p.part, quote(part))
		}
		if bad := p.nameFault(f.Name, name); bad != nil {
			return bad
		}
		if seen[name] {
			return faultf("keep one of the two", "%s names %s twice", f.Name, name)
		}
		seen[name] = true
		if bad := p.wrong(f.Name+" of "+name, word); bad != nil {
			return bad
		}
	}
	return nil
}

// parts reads a mapping of names to words, or a text in the form that the flag has.
func (r *reader) parts(f *Field, n *yaml.Node) {
	v, p := yamldoc.Follow(n), f.parted()
	if yamldoc.Null(v) || v.Kind == yaml.SequenceNode {
		r.wrong(n, f.Name, f.wants(), p.hint, true)
		return
	}
	if v.Kind != yaml.MappingNode {
		text, ok := r.text(n, f.Name, f.wants(), true)
		if !ok {
			return
		}
		if bad := f.parts(text); bad != nil {
			r.bad(n, bad)
			return
		}
		r.set(f, "", text, n)
		return
	}
	var parts []string
	ok := true
	r.entries(v, func(part string, k, v *yaml.Node) {
		name := f.Name + "." + part
		if bad := p.nameFault(f.Name, part); bad != nil {
			r.bad(k, bad)
			ok = false
			return
		}
		if yamldoc.Null(yamldoc.Follow(v)) {
			r.wrong(v, name, p.wants, p.hint, true)
			ok = false
			return
		}
		word, is := r.text(v, name, p.wants, true)
		if !is {
			ok = false
			return
		}
		if bad := p.wrong(name, word); bad != nil {
			r.bad(v, bad)
			ok = false
			return
		}
		parts = append(parts, part+"="+word)
	})
	if ok && len(parts) > 0 {
		r.set(f, "", strings.Join(parts, ","), n)
	}
}

// partsNode returns the YAML for the value of such a field. If the value has names, the YAML is a mapping.
func partsNode(text string, valid error) *yaml.Node {
	if !strings.Contains(text, "=") || valid != nil {
		return scalar(text)
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for part := range strings.SplitSeq(text, ",") {
		name, word, _ := strings.Cut(part, "=")
		n.Content = append(n.Content, scalar(name), scalar(word))
	}
	return n
}

// noUnit returns the fault for a duration that is a number without a unit.
func noUnit(name, text string) *fault {
	if _, err := job.ParseDuration(text + "s"); err == nil && strings.Trim(text, "0123456789.") == "" && text != "0" {
		return &fault{text: fmt.Sprintf("%s %q has no unit, write %ss", name, text, text)}
	}
	return nil
}
