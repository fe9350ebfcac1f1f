package rule

import (
	"cmp"
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Book is a set of rules. It finds the rule that fits a sign of failure.
type Book struct {
	rules   []*Rule // the most specific first
	byClass map[string][]int
	needles *textmatch.Index
}

// NewBook returns a Book that has the given rules. A more specific rule takes precedence, and of equally specific rules
// the one that comes first.
func NewBook(all []*Rule) *Book {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *Rule) int { return cmp.Compare(a.vagueness(), b.vagueness()) })
	return newBook(all)
}

// Rules returns the rules of the Book, those with the highest precedence first.
func (b *Book) Rules() []*Rule { return b.rules }

// With returns a new Book that has the rules of b and those in further. If several rules fit a sign, a rule in
// further takes precedence over a rule of b.
func (b *Book) With(further []Rule) *Book {
	if len(further) == 0 {
		return b
	}
	all := make([]*Rule, 0, len(further)+len(b.rules))
	for i := range further {
		all = append(all, &further[i])
	}
	return newBook(append(all, b.rules...))
}

func newBook(all []*Rule) *Book {
	b := &Book{rules: all, byClass: map[string][]int{}, needles: &textmatch.Index{}}
	for i, r := range all {
		for _, text := range r.Needles {
			b.needles.Add(text, i)
		}
		if len(r.Needles) == 0 {
			for _, c := range r.Classes {
				b.byClass[c] = append(b.byClass[c], i)
			}
		}
	}
	return b
}

// Match returns the rule with the highest precedence that fits a sign (see Rule), or nil if no rule fits.
func (b *Book) Match(s Sign) *Rule {
	found := b.needles.Find(s.Text, nil)
	if s.Class != "" {
		found = append(append(found, b.byClass[s.Class]...), b.byClass["*"]...)
	}
	slices.Sort(found)
	for _, i := range found {
		if r := b.rules[i]; r.fits(s) {
			return r
		}
	}
	return nil
}

// Candidate reports whether a needle of any rule occurs in a line.
func (b *Book) Candidate(line string) bool { return b.needles.Contains(line) }

// Words returns an index that has the needles of all rules, and the words in further.
func (b *Book) Words(further []string) *textmatch.Index {
	x := &textmatch.Index{}
	for _, r := range b.rules {
		for _, text := range r.Needles {
			x.Add(text, 0)
		}
	}
	for _, text := range further {
		x.Add(text, 0)
	}
	return x
}
