package textmatch

import (
	"cmp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// needs is a quick test for a regular expression: a text can match one of its alternatives only if the text contains
// certain literal texts. Most lines of a log contain none of them. For such a line, the expression itself, which takes
// a hundred times longer, need not be tried. Russ Cox describes the method in "Regular Expression Matching with a
// Trigram Index" (2012).
type needs struct {
	long  Index // the literal texts of at least 4 bytes; the number of a text is that of its clause
	short []needle
	pairs [1 << 10]uint64 // one bit for each pair of bytes with which a short text begins
	// clauses has, for each alternative, the numbers of its clauses. A text that matches the alternative contains one
	// of the literal texts of each of these clauses.
	clauses [][]int
}

// needsOf returns the needs of a regular expression. It returns nil if a text can match without containing a certain
// literal text.
func needsOf(text string) *needs {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	n := &needs{}
	number := 0
	for _, part := range parted(re.Simplify()) {
		all := literalsOf(part).clauses()
		if len(all) == 0 {
			return nil
		}
		var numbers []int
		for _, texts := range all {
			for _, t := range texts {
				n.add(t, number)
			}
			numbers = append(numbers, number)
			number++
		}
		n.clauses = append(n.clauses, numbers)
	}
	return n
}

// parted returns the alternatives of a regular expression.
func parted(re *syntax.Regexp) (all []*syntax.Regexp) {
	switch re.Op {
	case syntax.OpCapture:
		return parted(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			all = append(all, parted(sub)...)
		}
		return all
	case syntax.OpConcat: // an empty part, such as \b, may stand before the alternatives
		var wide []*syntax.Regexp
		for _, sub := range re.Sub {
			if !slices.Equal(literalsOf(sub).exact, []string{""}) {
				wide = append(wide, sub)
			}
		}
		if len(wide) == 1 {
			return parted(wide[0])
		}
	}
	return []*syntax.Regexp{re}
}

func (n *needs) add(text string, clause int) {
	if len(text) >= 4 {
		n.long.Add(text, clause)
		return
	}
	n.short = append(n.short, needle{text, clause})
	for second := range 256 {
		if pair := int(text[0])<<8 | second; len(text) == 1 || second == int(text[1]) {
			n.pairs[pair>>6] |= 1 << (pair & 63)
		}
	}
}

// in reports whether a text may match.
func (n *needs) in(text string) bool {
	if n == nil {
		return true
	}
	var buffer [16]int
	found := n.long.Find(text, buffer[:0])
	if n.short != nil {
		found = n.findShort(text, found)
	}
	for _, all := range n.clauses {
		if len(found) > 0 && !slices.ContainsFunc(all, func(clause int) bool { return !slices.Contains(found, clause) }) {
			return true
		}
	}
	// With case ignored, these runes match "s" and "k".
	return strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a")
}

// findShort appends to found the numbers of the clauses whose short texts occur in text.
func (n *needs) findShort(text string, found []int) []int {
	for i := range len(text) {
		pair := int(lower[text[i]]) << 8
		if i+1 < len(text) {
			pair |= int(lower[text[i+1]])
		}
		if n.pairs[pair>>6]&(1<<(pair&63)) == 0 {
			continue
		}
		for _, t := range n.short {
			if !slices.Contains(found, t.number) && hasPrefixFold(text[i:], t.text) {
				found = append(found, t.number)
			}
		}
	}
	return found
}

// literals has the literal texts of a part of a regular expression, in lower case.
type literals struct {
	exact []string // the part matches only these texts; nil if it matches others, or too many
	// need has clauses, the best one first. A text that matches the part contains one of the texts of each clause.
	need [][]string
}

// Limits that keep needs small. A part that exceeds them has no literals.
const (
	maxExact   = 64
	maxClass   = 4 // characters of a class
	maxClauses = 2
)

// clauses returns the clauses of a part. There are none if a text can match without containing a certain literal text.
func (l literals) clauses() [][]string { return better(l.need, l.exact) }

// better adds a clause to clauses and returns the best ones. Long texts are better than short texts, and few texts are
// better than many.
func better(clauses [][]string, add []string) [][]string {
	if shortest(add) == 0 {
		return clauses
	}
	all := append(slices.Clip(clauses), add)
	slices.SortStableFunc(all, func(a, b []string) int {
		return cmp.Or(cmp.Compare(shortest(b), shortest(a)), cmp.Compare(len(a), len(b)))
	})
	return all[:min(len(all), maxClauses)]
}

// shortest returns the length of the shortest of texts, or 0 if there are none.
func shortest(texts []string) int {
	least := 0
	for i, t := range texts {
		if i == 0 || len(t) < least {
			least = len(t)
		}
	}
	return least
}

// literalsOf returns the literals of a part of a regular expression. The part must have been simplified.
func literalsOf(re *syntax.Regexp) literals {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return literals{exact: []string{""}}
	case syntax.OpLiteral:
		return literalText(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		return classLiterals(re.Rune)
	case syntax.OpCapture:
		return literalsOf(re.Sub[0])
	case syntax.OpPlus:
		return literals{need: literalsOf(re.Sub[0]).clauses()}
	case syntax.OpQuest:
		if sub := literalsOf(re.Sub[0]); sub.exact != nil && len(sub.exact) < maxExact {
			return literals{exact: append([]string{""}, sub.exact...)}
		}
	case syntax.OpConcat:
		return concatenated(re.Sub)
	case syntax.OpAlternate:
		return alternatives(re.Sub)
	}
	return literals{}
}

// literalText returns the literals of a literal. fold is true if the case of the literal is ignored.
func literalText(runes []rune, fold bool) literals {
	for _, r := range runes {
		if fold && r > unicode.MaxASCII && r != '\u017f' && r != '\u212a' {
			return literals{}
		}
	}
	return literals{exact: []string{lowered(string(runes))}}
}

// lowered returns text with its ASCII letters in lower case. Runes that match "s" or "k" if case is ignored become
// these letters.
func lowered(text string) string {
	b := []byte(strings.NewReplacer("\u017f", "s", "\u212a", "k").Replace(text))
	for i, c := range b {
		b[i] = lower[c]
	}
	return string(b)
}

// classLiterals returns the literals of a class of characters. ranges has the first and the last rune of each range of
// the class.
func classLiterals(ranges []rune) literals {
	seen := map[string]bool{}
	var exact []string
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			t := lowered(string(r))
			if !seen[t] {
				exact = append(exact, t)
			}
			if seen[t] = true; len(seen) > maxClass {
				return literals{}
			}
		}
	}
	return literals{exact: exact}
}

func concatenated(parts []*syntax.Regexp) literals {
	all := literals{exact: []string{""}}
	run := []string{""} // the texts of the parts since the last inexact part
	for _, part := range parts {
		l := literalsOf(part)
		if l.exact != nil && len(l.exact)*len(run) <= maxExact {
			run = joined(run, l.exact)
			continue
		}
		all.need = better(all.need, run)
		if len(l.need) > 0 { // the other clauses may repeat texts of the first
			all.need = better(all.need, l.need[0])
		}
		all.exact, run = nil, []string{""}
		if l.exact != nil {
			run = l.exact
		}
	}
	if all.exact != nil {
		return literals{exact: run}
	}
	all.need = better(all.need, run)
	return all
}

// joined returns each text of a followed by each text of b.
func joined(a, b []string) (all []string) {
	for _, x := range a {
		for _, y := range b {
			all = append(all, x+y)
		}
	}
	return all
}

func alternatives(parts []*syntax.Regexp) literals {
	exact := []string{}
	var all [][][]string // the clauses of each part
	most := 0
	for _, part := range parts {
		l := literalsOf(part)
		if l.exact == nil {
			exact = nil
		} else if exact != nil {
			exact = append(exact, l.exact...)
		}
		all = append(all, l.clauses())
		most = max(most, len(all[len(all)-1]))
	}
	if exact != nil && len(exact) <= maxExact {
		return literals{exact: exact}
	}
	need := make([][]string, most)
	for _, clauses := range all {
		if len(clauses) == 0 {
			return literals{}
		}
		for i := range need {
			need[i] = append(need[i], clauses[min(i, len(clauses)-1)]...)
		}
	}
	return literals{need: need}
}
