package diagnose

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// wrappers are exceptions that only carry another exception.
var wrappers = map[string]bool{"ProcessRaisedException": true, "RayTaskError": true, "InstantiationException": true, "ExceptionGroup": true,
	"BaseExceptionGroup": true, "_RemoteTraceback": true, "RemoteTraceback": true, "RemoteError": true, "DatasetGenerationError": true,
	"HydraException": true, "TuneError": true, "TrainingFailedError": true, "MisconfigurationException": true}

// judge makes one sign of a chain of exceptions. The last exception ended the program, but another
// one is better if the last only carries it or says less.
func judge(chain []exception, book *rules.Book) *sign {
	last := len(chain) - 1
	use := last
	for use > 0 && wrappers[base(chain[use].class)] {
		use--
	}
	if wrappers[base(chain[use].class)] {
		use = last
	}
	g := chain[use].sign()
	if chain[0].loading {
		g.context += "\n: load checkpoint"
	}
	for i := use - 1; i >= 0; i-- {
		// An exception that came from another process has two places. The first is where
		// it was raised.
		if e := &chain[i]; g.where == "" || base(e.class) == g.class && e.message == chain[use].message && len(e.frames) > 0 {
			g.where = e.sign().where
		}
	}
	g.rule = g.match(book)
	if g.rule != nil && g.rule.Is(rules.Generic) && !g.rule.Is(rules.Cascade) {
		for i := use - 1; i >= 0; i-- {
			h := chain[i].sign()
			if h.rule = h.match(book); h.rule == nil || h.rule.Is(rules.Generic) || wrappers[base(chain[i].class)] {
				continue
			}
			h.title, h.where = g.title+", after "+h.title, g.where
			h.at, h.discount = g.at, 0.1
			g = h
			break
		}
	}
	g.from, g.to = chain[0].from, chain[last].to
	return g
}

// grouped reads an exception group, which Python prints in a frame.
func grouped(text []string, i int) []exception {
	end := i
	for end < len(text) && groupLine.MatchString(text[end]) {
		end++
	}
	inner := make([]string, 0, end-i)
	for _, t := range text[i:end] {
		t = strings.TrimLeft(t, " ")
		switch {
		case strings.HasPrefix(t, "| "):
			t = t[2:]
		case strings.HasPrefix(t, "+ Exception Group "):
			t = t[len("+ Exception Group "):]
		default:
			t = ""
		}
		inner = append(inner, t)
	}
	all := tracebacks(inner)
	if len(all) > 1 && wrappers[base(all[0].class)] { // the group and its first exception, which may be in groups of its own
		first := 1
		for first < len(all)-1 && wrappers[base(all[first].class)] {
			first++
		}
		all = append(all[:1:1], all[first])
	}
	for j := range all {
		all[j].from, all[j].at, all[j].to, all[j].bare = all[j].from+i, all[j].at+i, all[j].to+i, false
	}
	if len(all) > 0 {
		all[len(all)-1].to = end
	}
	return all
}

var links = []*textmatch.Pattern{
	textmatch.New(`^During handling of the above exception, another exception occurred:$`),
	textmatch.New(`^The above exception was the direct cause of the following exception:$`),
	textmatch.New(`^-- Process \d+ terminated with the following error:$`),
}

// linked reports whether the exception at line to continues the one that
// ended at line from.
func linked(text []string, from, to int) bool {
	if strings.HasPrefix(text[to], "Original ") {
		return to-from <= 2
	}
	found := false
	for _, t := range text[from:to] {
		switch {
		case t == "" || t == `"""`:
		case slices.ContainsFunc(links, func(l *textmatch.Pattern) bool { return l.MatchString(t) }):
			found = true
		default:
			return false
		}
	}
	return found
}
