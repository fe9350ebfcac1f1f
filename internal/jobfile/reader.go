package jobfile

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
	"github.com/gangrun/gangrun/internal/yamldoc"
)

// maxErrors limits how many errors of one file are reported.
const maxErrors = 20

// reader walks through a YAML document and collects the settings in it. The walk is never deeper than the table of
// fields, so aliases cannot make it endless.
type reader struct {
	name     string
	settings []setting
	errs     Errors
	more     int // number of errors beyond maxErrors
	bytes    int // bytes of the values that were read; each use of an alias counts
}

// sorted returns errors in the order of the file. more is the number of errors that es lacks.
func sorted(es Errors, name string, more int) Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more > 0 {
		es = append(es, &Error{File: name, Line: es[len(es)-1].Line, Text: fmt.Sprintf("there are %d errors more", more)})
	}
	return es
}

func (r *reader) at(n *yaml.Node) origin { return origin{file: r.name, line: n.Line, column: n.Column} }

func (r *reader) bad(n *yaml.Node, bad *fault) {
	if len(r.errs) == maxErrors {
		r.more++
		return
	}
	r.errs = append(r.errs, r.at(n).error(bad))
}

// wrong reports that the value at n is not what the file must have there. It shows the text of the value if the text
// cannot be a secret.
func (r *reader) wrong(n *yaml.Node, what, wants, hint string, show bool) {
	stood := "text"
	if show {
		stood = quote(yamldoc.Follow(n).Value)
	}
	r.bad(n, faultf(hint, "%s wants %s, not %s", what, wants, yamldoc.Kind(n, stood)))
}

func (r *reader) root(n *yaml.Node) {
	if n == nil || yamldoc.Null(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "a job file", "keys and their values", "a command stands after --, as in: gangrun run -n 4 -- python train.py", true)
		return
	}
	r.group("", n)
}

// group reads the fields of a group. If group is "", it reads the top of the file.
func (r *reader) group(group string, n *yaml.Node) {
	r.entries(n, func(key string, k, v *yaml.Node) {
		name := key
		if group != "" {
			name = group + "." + key
		}
		if f, ok := find(name); ok && f.Key && (group != "" || !strings.Contains(key, ".")) {
			r.field(f, v)
			return
		}
		if on, ok := switched(yamldoc.Follow(v).Value); ok && name == "trial.off" { // the form of older versions
			f, _ := find("trial.mode")
			for i := 0; i+1 < len(n.Content); i += 2 {
				if yamldoc.Follow(n.Content[i]).Value == "mode" {
					r.bad(k, faultf("take off away", "trial has both off and mode"))
					return
				}
			}
			r.set(f, "", map[bool]string{true: string(job.TrialOff), false: string(job.TrialOn)}[on], v)
			return
		}
		r.bad(k, unknown(group, key))
	})
}

// entries calls each for each entry of a mapping.
func (r *reader) entries(n *yaml.Node, each func(key string, k, v *yaml.Node)) {
	yamldoc.Entries(n, what, func(_ string, k, v *yaml.Node) {
		if key, ok := r.text(k, "a key", "a name", true); ok {
			each(key, k, v)
		}
	}, func(at *yaml.Node, bad *yamldoc.Error) { r.bad(at, &fault{bad.Text, bad.Hint}) })
}

// text reads a single value. It returns the text that the user has written.
func (r *reader) text(n *yaml.Node, what, wants string, show bool) (string, bool) {
	v := yamldoc.Follow(n)
	if v.Kind != yaml.ScalarNode || yamldoc.Null(v) {
		hint := ""
		if yamldoc.Null(v) {
			hint = `write "" for an empty text`
		}
		r.wrong(n, what, wants, hint, show)
		return "", false
	}
	if r.bytes += len(v.Value); r.bytes > MaxSize {
		r.bad(n, faultf("", "the aliases up to here stand for more than %d bytes", MaxSize))
		return "", false
	}
	if v.Style&yaml.TaggedStyle == 0 {
		return v.Value, true
	}
	switch v.Tag {
	case "!!str", "!!int", "!!float", "!!bool":
		return v.Value, true
	case "!!binary":
		if data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v.Value), "")); err == nil {
			return string(data), true
		}
		r.bad(n, faultf("", "%s is tagged !!binary, but is not base64", what))
	}
	return "", false // tags has reported it
}

// set records a value, and reports whether it has done so. It does not record a value that would be wrong in every job.
func (r *reader) set(f *Field, part string, value any, n *yaml.Node) bool {
	bads := f.alone(value)
	for _, bad := range bads {
		r.bad(n, bad)
	}
	if len(bads) == 0 {
		r.settings = append(r.settings, setting{f, part, value, r.at(n)})
	}
	return len(bads) == 0
}

// field reads the value of one key. An empty list or mapping sets nothing.
func (r *reader) field(f *Field, n *yaml.Node) {
	v := yamldoc.Follow(n)
	many := f.Kind == Env || f.Kind == Policy || f.Kind == Group || f.Kind == Command || f.Kind == Words || f.Kind == Paths || f.Kind == Names || f.Kind == Mounts
	if many && yamldoc.Null(v) {
		return
	}
	switch f.Kind {
	case Group:
		r.inner(f, n)
	case Env:
		r.env(f, n)
	case Policy:
		r.policy(f, n)
	case Patience, EarlyStop:
		r.parts(f, n)
	case Command, Words:
		r.words(f, n)
	case Paths, Names, Mounts:
		r.list(f, n)
	case Hosts:
		if v.Kind == yaml.SequenceNode {
			r.wrong(n, f.Name, f.wants(), "write "+f.Name+": "+oneText(v), true)
			return
		}
		fallthrough
	default:
		text, ok := r.text(n, f.Name, f.wants(), true)
		if !ok {
			return
		}
		value, least, from, bad := f.span(text)
		if bad != nil {
			r.bad(n, bad)
			return
		}
		if r.set(f, "", value, n) && least != nil {
			r.set(least, "", from, n)
		}
	}
}

// oneText returns a list of names as one text. If the list has other things, it returns an example.
func oneText(list *yaml.Node) string {
	var names []string
	for _, n := range list.Content {
		if v := yamldoc.Follow(n); v.Kind == yaml.ScalarNode && !yamldoc.Null(v) && v.Value != "" {
			names = append(names, v.Value)
		}
	}
	text := strings.Join(names, ",")
	if text == "" || len(names) < len(list.Content) || quote(text) != `"`+text+`"` {
		return "h1,h2:4"
	}
	return text
}

// inner reads a group. In place of the trial's group, the file may have the word off.
func (r *reader) inner(f *Field, n *yaml.Node) {
	v := yamldoc.Follow(n)
	if v.Kind == yaml.MappingNode {
		r.group(f.Name, v)
		return
	}
	if mode, ok := trialMode(v.Value); ok && v.Kind == yaml.ScalarNode && f.Name == "trial" {
		f, _ := find(f.Name + ".mode")
		r.set(f, "", string(mode), n)
		return
	}
	r.wrong(n, f.Name, f.wants(), "", true)
}

// trialMode reads a text that the file may have in place of the trial's group.
func trialMode(text string) (job.TrialMode, bool) {
	if on, ok := switched(text); ok {
		return map[bool]job.TrialMode{true: job.TrialOn, false: job.TrialOff}[on], true
	}
	return job.TrialMode(text), slices.Contains(job.TrialModes(), job.TrialMode(text))
}

func (r *reader) env(f *Field, n *yaml.Node) {
	v := yamldoc.Follow(n)
	if v.Kind != yaml.MappingNode {
		r.wrong(n, f.Name, f.wants(), "write it as in env: {LR: 0.1, MODE: fast}", false)
		return
	}
	r.entries(v, func(name string, k, v *yaml.Node) {
		if value, ok := r.text(v, f.Name+"."+name, "text, a number, true or false", false); ok {
			r.set(f, name, map[string]string{name: value}, k)
		}
	})
}

func (r *reader) policy(f *Field, n *yaml.Node) {
	v := yamldoc.Follow(n)
	if v.Kind != yaml.MappingNode {
		r.wrong(n, f.Name, f.wants(), "write it as in policy: {unknown: again}", true)
		return
	}
	categories, actions := texts(job.Categories()), texts(job.Actions())
	r.entries(v, func(name string, k, v *yaml.Node) {
		if !slices.Contains(categories, name) {
			bad := faultf("", "policy names %s, which is no category%s", quote(name), suggest.DidYouMean(name, categories))
			if suggest.Nearest(name, categories) == "" {
				bad.hint = "the categories are: " + strings.Join(categories, ", ")
			}
			r.bad(k, bad)
			return
		}
		action, ok := r.text(v, "policy."+name, "one of "+strings.Join(actions, ", "), true)
		if !ok {
			return
		}
		if !slices.Contains(actions, action) {
			r.bad(v, faultf("", "policy.%s wants one of %s, not %s%s", name, strings.Join(actions, ", "), quote(action), suggest.DidYouMean(action, actions)))
			return
		}
		r.set(f, name, map[job.Category]job.Action{job.Category(name): job.Action(action)}, v)
	})
}

func (r *reader) words(f *Field, n *yaml.Node) {
	v := yamldoc.Follow(n)
	if v.Kind == yaml.SequenceNode {
		if words, ok := r.items(f, v); ok {
			r.set(f, "", words, n)
		}
		return
	}
	line, ok := r.text(n, f.Name, f.wants(), true)
	if !ok {
		return
	}
	words, bad := split(line)
	if bad != nil {
		r.bad(n, &fault{f.Name + " " + bad.text, bad.hint})
		return
	}
	r.set(f, "", words, n)
}

func (r *reader) list(f *Field, n *yaml.Node) {
	v := yamldoc.Follow(n)
	if v.Kind != yaml.SequenceNode {
		r.wrong(n, f.Name, f.wants(), fmt.Sprintf("write it in brackets, as in %s: [ONE, TWO]", f.Name), true)
		return
	}
	items, ok := r.items(f, v)
	for i, item := range items {
		bad := pathFault(f.Name, item)
		switch f.Kind {
		case Names:
			bad = variableFault(f.Name, item)
		case Mounts:
			if _, err := job.ParseMount(item, "/workdir"); err != nil {
				bad = faultOf(err)
			}
		}
		if bad != nil {
			r.bad(v.Content[i], bad)
			ok = false
		}
	}
	if ok {
		r.set(f, "", items, n)
	}
}

// items reads the items of a list, and reports whether all of them are text.
func (r *reader) items(f *Field, list *yaml.Node) ([]string, bool) {
	all := true
	items := make([]string, len(list.Content))
	for i, n := range list.Content {
		text, ok := r.text(n, fmt.Sprintf("item %d of %s", i+1, f.Name), "text", true)
		items[i] = text
		all = all && ok
	}
	return items, all
}
