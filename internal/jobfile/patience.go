package jobfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
	"github.com/gangrun/gangrun/internal/suggest"
	"github.com/gangrun/gangrun/internal/yamldoc"
)

// levels are those that can be waited for: nothing is wider than the last.
func levels() []string {
	all := texts(job.Localities())
	return all[:len(all)-1]
}

// levelFault says what is wrong with the name of a level.
func levelFault(name, level string) *fault {
	known := levels()
	for _, l := range known {
		if l == level {
			return nil
		}
	}
	bad := faultf("", "%s names %s, which is no level to wait for%s", name, quote(level), suggest.DidYouMean(level, known))
	if suggest.Nearest(level, known) == "" {
		bad.hint = "the levels to wait for are: " + strings.Join(known, ", ")
	}
	return bad
}

// waitFault says what is wrong with the time for which a level is waited for.
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

// patience reads the text form, one time for all levels or LEVEL=TIME with commas
// between.
func (f *Field) patience(text string) *fault {
	if !strings.Contains(text, "=") {
		return waitFault(f.Name, text)
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		level, wait, ok := strings.Cut(part, "=")
		if !ok {
			return faultf("", "%s wants LEVEL=TIME between commas, not %s", f.Name, quote(part))
		}
		if bad := levelFault(f.Name, level); bad != nil {
			return bad
		}
		if seen[level] {
			return faultf("keep one of the two", "%s names %s twice", f.Name, level)
		}
		seen[level] = true
		if bad := waitFault(f.Name+" of "+level, wait); bad != nil {
			return bad
		}
	}
	return nil
}

// patience reads a mapping of levels to times, or the text that the flag takes.
func (r *reader) patience(f *Field, n *yaml.Node) {
	v := yamldoc.Follow(n)
	const hint = "write it as in patience: 2m, patience: strict or patience: {island: 10m, host: 2m}"
	if yamldoc.Null(v) || v.Kind == yaml.SequenceNode {
		r.wrong(n, f.Name, f.wants(), hint, true)
		return
	}
	if v.Kind != yaml.MappingNode {
		text, ok := r.text(n, f.Name, f.wants(), true)
		if !ok {
			return
		}
		if bad := f.patience(text); bad != nil {
			r.bad(n, bad)
			return
		}
		r.set(f, "", text, n)
		return
	}
	var parts []string
	ok := true
	r.entries(v, func(level string, k, v *yaml.Node) {
		name := f.Name + "." + level
		if bad := levelFault(f.Name, level); bad != nil {
			r.bad(k, bad)
			ok = false
			return
		}
		const wants = "a duration with a unit, as in 2m, or " + job.Strict
		if yamldoc.Null(yamldoc.Follow(v)) {
			r.wrong(v, name, wants, hint, true)
			ok = false
			return
		}
		wait, is := r.text(v, name, wants, true)
		if !is {
			ok = false
			return
		}
		if bad := waitFault(name, wait); bad != nil {
			r.bad(v, bad)
			ok = false
			return
		}
		parts = append(parts, level+"="+wait)
	})
	if ok && len(parts) > 0 {
		r.set(f, "", strings.Join(parts, ","), n)
	}
}

// patienceNode is the YAML for a Patience: a mapping where it names levels.
func patienceNode(p job.Patience) *yaml.Node {
	if !strings.Contains(string(p), "=") || jobcheck.Patience(p) != nil {
		return scalar(string(p))
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for part := range strings.SplitSeq(string(p), ",") {
		level, wait, _ := strings.Cut(part, "=")
		n.Content = append(n.Content, scalar(level), scalar(wait))
	}
	return n
}

// noUnit says that a duration is a bare number.
func noUnit(name, text string) *fault {
	if _, err := job.ParseDuration(text + "s"); err == nil && strings.Trim(text, "0123456789.") == "" && text != "0" {
		return &fault{text: fmt.Sprintf("%s %q has no unit, write %ss", name, text, text)}
	}
	return nil
}
