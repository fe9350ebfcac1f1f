package diagnose

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// exceptions finds the uncaught Python exceptions of a text: one sign for
// each chain. Lines that belong to any are marked as covered.
func exceptions(text []string, covered []bool, book *rules.Book) []*sign {
	all := pytrace.Tracebacks(text)
	var signs []*sign
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].Linked {
			j++
		}
		chain := all[i:j]
		for k := chain[0].From; k < chain[len(chain)-1].To; k++ {
			covered[k] = true
		}
		if !chain[0].Ignored {
			signs = append(signs, judge(chain[:len(chain)-pytrace.Cleanups(text, chain)], book))
			signs[len(signs)-1].to = chain[len(chain)-1].To
		}
		i = j
	}
	return append(signs, escaped(text, covered, book)...)
}

// escaped finds the exceptions that a logger has written into one line each.
func escaped(text []string, covered []bool, book *rules.Book) (signs []*sign) {
	for i, t := range text {
		if covered[i] {
			continue
		}
		found, chain := pytrace.Escaped(t, len(text)-1-i)
		if covered[i] = found; len(chain) > 0 {
			g := judge(chain, book)
			g.from, g.at, g.to = i, i, i+1
			signs = append(signs, g)
		}
	}
	return signs
}

// judge makes one sign of a chain of exceptions. The last exception ended the program, but another
// one is better if the last only carries it or says less.
func judge(chain []pytrace.Exception, book *rules.Book) *sign {
	last := len(chain) - 1
	use := last
	for use > 0 && pytrace.Wrappers[chain[use].Base()] {
		use--
	}
	if pytrace.Wrappers[chain[use].Base()] {
		use = last
	}
	g := raised(chain[use].Carried())
	if chain[0].Loading || chain[use].Loads() {
		g.context += "\n: load checkpoint"
	}
	for i := use - 1; i >= 0; i-- {
		// An exception that came from another process has two places. The first is where
		// it was raised.
		if e := &chain[i]; g.where == "" || e.Base() == g.class && e.Message == chain[use].Message && len(e.Frames) > 0 {
			g.where = e.Where()
		}
	}
	g.rule = g.match(book)
	if g.rule != nil && g.rule.Is(rules.Generic) && !g.rule.Is(rules.Cascade) {
		for i := use - 1; i >= 0; i-- {
			h := raised(&chain[i])
			if h.rule = h.match(book); h.rule == nil || h.rule.Is(rules.Generic) || pytrace.Wrappers[chain[i].Base()] {
				continue
			}
			h.title, h.where = g.title+", after "+h.title, g.where
			h.at, h.discount = g.at, 0.1
			g = h
			break
		}
	}
	g.from, g.to = chain[0].From, chain[last].To
	return g
}

// raised makes a sign of an exception.
func raised(e *pytrace.Exception) *sign {
	g := &sign{class: e.Base(), text: e.Text, from: e.From, at: e.At, to: e.To, weak: e.Bare}
	if g.class == "error" { // zlib.error, struct.error
		g.class = e.Class
	}
	g.title = g.class
	if e.Message != "" {
		g.title += ": " + e.Message
	}
	var context []string
	for _, f := range e.Frames {
		context = append(context, f.Function+": "+f.Source)
	}
	g.context = strings.Join(context, "\n")
	g.where = e.Where()
	if e.Bare {
		g.discount = 0.2
	}
	return g
}
