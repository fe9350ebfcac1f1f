package sign

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
)

// exceptions finds the uncaught Python exceptions of a text, and returns one sign for each chain of exceptions. It sets
// covered for all lines of exceptions.
func exceptions(text []string, covered []bool, book *rule.Book) []*Sign {
	all := pytrace.Tracebacks(text)
	var signs []*Sign
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].Linked {
			j++
		}
		chain := all[i:j]
		for k := chain[0].From; k < chain[len(chain)-1].To; k++ {
			covered[k] = true
		}
		if !chain[0].Ignored && !(len(chain) == 1 && chain[0].Harmless()) {
			signs = append(signs, judge(chain[:len(chain)-pytrace.Cleanups(text, chain)], book))
			signs[len(signs)-1].To = chain[len(chain)-1].To
		}
		i = j
	}
	return append(signs, escaped(text, covered, book)...)
}

// escaped finds exceptions that a logger has written into one line each.
func escaped(text []string, covered []bool, book *rule.Book) (signs []*Sign) {
	for i, t := range text {
		if covered[i] {
			continue
		}
		found, chain := pytrace.Escaped(t, unconcerned(text[i+1:]))
		if covered[i] = found; len(chain) > 0 {
			chain = append(chain, pytrace.Recorded(text[max(0, i-recordLines):i], chain[len(chain)-1])...)
			g := judge(chain, book)
			g.From, g.At, g.To = i, i, i+1
			signs = append(signs, g)
		}
	}
	return signs
}

// unconcerned counts the lines that are not records of errors, up to a few.
func unconcerned(text []string) (n int) {
	for _, t := range text {
		if level, _ := message.Record(t); level < message.Error {
			if n++; n > pytrace.AfterEscaped {
				break
			}
		}
	}
	return n
}

// recordLines is how many lines above a traceback in JSON may have the message of the same record.
const recordLines = 3

// judge returns one sign for a chain of exceptions. It uses the last exception, which ended the program, unless another
// one says more or the last only carries it.
func judge(chain []pytrace.Exception, book *rule.Book) *Sign {
	last := len(chain) - 1
	use := last
	for use > 0 && pytrace.Wrappers[chain[use].Base()] {
		use--
	}
	if pytrace.Wrappers[chain[use].Base()] {
		use = last
	}
	g := OfException(chain[use].Carried())
	if chain[0].Loading || chain[use].Loads() {
		g.Context += "\n: load checkpoint"
	}
	for i := use - 1; i >= 0; i-- {
		// An exception that came from another process has two places. The first is where the exception was raised.
		if e := &chain[i]; g.Where == "" || e.Base() == g.Class && e.Message == chain[use].Message && len(e.Frames) > 0 {
			g.Where = e.Where()
		}
	}
	g.Rule = g.Match(book)
	if g.Rule != nil && g.Rule.Is(rule.Generic) && !g.Rule.Is(rule.Cascade) {
		for i := use - 1; i >= 0; i-- {
			h := OfException(&chain[i])
			if h.Rule = h.Match(book); h.Rule == nil || h.Rule.Is(rule.Generic) || pytrace.Wrappers[chain[i].Base()] {
				continue
			}
			h.Title, h.Where = g.Title+", after "+h.Title, g.Where
			h.At, h.Discount = g.At, 0.1
			g = h
			break
		}
	}
	g.From, g.To = chain[0].From, chain[last].To
	return g
}

// OfException makes a sign of an exception.
func OfException(e *pytrace.Exception) *Sign {
	g := &Sign{Class: e.Base(), Text: e.Text, From: e.From, At: e.At, To: e.To, Weak: e.Bare}
	if g.Class == "error" { // such as zlib.error and struct.error
		g.Class = e.Class
	}
	g.Title = g.Class
	if e.Message != "" {
		g.Title += ": " + e.Message
	}
	var context []string
	for _, f := range e.Frames {
		context = append(context, f.Function+": "+f.Source)
	}
	g.Context = strings.Join(context, "\n")
	g.Where = e.Where()
	if e.Cut {
		g.Class = rule.CutOff
	}
	if e.Bare {
		g.Discount = 0.2
	}
	return g
}
