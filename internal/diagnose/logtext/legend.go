package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	// nameTag matches a tag that names a process other than by its rank, as in "[m1:701] ", "pid5212 | " and "[dp1 tp0]
	// ".
	nameTag = textmatch.New(`^ {0,4}(?:[\[(<{]([A-Za-z][\w.:@/=, -]{0,40}|\d{3,8})[\])>}]:?|([A-Za-z][\w.:@/-]{0,40}?) ?[|>:])(?:\s|$)`)
	// arrow matches what stands between a name and its rank.
	arrow = textmatch.New(`\s*(?:[-=]+>|=)\s*`)
	// pair matches a word and the number after it.
	pair = textmatch.New(`([A-Za-z]+)[A-Za-z_-]*[ =:#]{0,2}(\d{1,6})`)
	// legendRank matches the rank in a line that says which rank a name stands for.
	legendRank = textmatch.New(`(?i)\b(?:(?:global|world|mpi|comm)[_ -]?)?(?:ranks?|task|global|world|process index)(?: is|[ =:#(]{1,3})\s*(\d{1,5})(?:[^\w-]|$)`)
)

// Limits on names and on the lines that explain them.
const (
	legendBytes = 2000 // length of a line that may explain names
	mostNames   = 4096
	mostLegends = 200 // only so many of the first lines may explain names
)

// legended sets the ranks of lines whose tags name processes in the program's own way, if lines of the log say which
// rank each name stands for. It removes the tags, and reports whether it did so. If processes is true, it only uses
// tags that are PIDs.
func legended(lines []job.Line, processes bool) bool {
	tags, names := make([]string, len(lines)), map[string]int{}
	for i, l := range lines {
		if m := nameTag.FindStringSubmatch(l.Text); m != nil && len(names) < mostNames && (!processes || digits.FindString(m[1]) == m[1] && m[1] != "") {
			tags[i] = m[1] + m[2]
			names[tags[i]]++
		}
	}
	for i, t := range tags {
		if t != "" && names[t] < 2 && !strings.ContainsAny(t, "0123456789") {
			tags[i] = ""
			delete(names, t)
		}
	}
	ranks := explained(lines, names)
	tagged := 0
	for name := range ranks {
		tagged = max(tagged, names[name])
	}
	if tagged < 2 {
		return false
	}
	for i, t := range tags {
		if r, ok := ranks[t]; ok && t != "" {
			lines[i].Rank = r
			// Plain removes the other tags later. Until then, they name the process.
			if !prefixes.MatchString(lines[i].Text) {
				lines[i].Text = lines[i].Text[nameTag.FindStringIndex(lines[i].Text)[1]:]
			}
		}
	}
	return true
}

// explained returns the rank of each name that lines of the log explain. It returns nil if there are fewer than two
// such names, if two names have the same rank, or if lines contradict one another.
func explained(lines []job.Line, names map[string]int) map[string]int {
	if len(names) < 2 {
		return nil
	}
	ranks, owners := map[string]int{}, map[int]string{}
	set := func(name string, rank int) bool {
		if r, ok := ranks[name]; ok {
			return r == rank
		}
		if _, ok := owners[rank]; ok {
			return false
		}
		ranks[name], owners[rank] = rank, name
		return true
	}
	for _, l := range lines[:min(len(lines), mostLegends)] {
		if len(l.Text) > legendBytes {
			continue
		}
		for name, rank := range legend(l.Text, names) {
			if !set(name, rank) {
				return nil
			}
		}
	}
	if len(ranks) < 2 {
		return nil
	}
	return ranks
}

// legend returns the ranks of the names that the line t explains.
func legend(t string, names map[string]int) map[string]int {
	found := map[string]int{}
	// The name has a space, so that it is none of the fields below.
	if m := nameTag.FindStringSubmatch(t); m != nil && strings.Contains(m[1], " ") {
		_, named := names[m[1]]
		if r := legendRank.FindStringSubmatch(t[nameTag.FindStringIndex(t)[1]:]); r != nil && named {
			return map[string]int{m[1]: Number(r[1])}
		}
	}
	add := func(a, b string) {
		if _, ok := names[b]; ok && number(a) {
			found[b] = Number(a)
		}
	}
	fields := strings.FieldsFunc(arrow.ReplaceAllString(t, "="), func(r rune) bool { return strings.ContainsRune(" \t,;{}()'\"[]", r) })
	for _, f := range fields {
		if a, b, ok := strings.Cut(f, "="); ok {
			add(a, b)
			add(b, a)
		} else if i := strings.IndexByte(f, ':'); i > 0 {
			add(f[:i], f[i+1:])
			if i = strings.LastIndexByte(f, ':'); i > 0 {
				add(f[i+1:], f[:i])
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	if m := legendRank.FindStringSubmatch(t); m != nil {
		before, rest := 0, t
		for _, f := range fields {
			at := strings.Index(rest, f)
			f = strings.Trim(f, ":|<>")
			if _, ok := names[f]; !ok || at < 0 {
				continue
			}
			after := rest[at+len(f):]
			if o := legendRank.FindStringSubmatch(after); o != nil {
				found[f] = Number(o[1])
				rest = after[legendRank.FindStringIndex(after)[1]:]
			} else if b := legendRank.FindStringSubmatch(t[before : len(t)-len(rest)+at]); b != nil {
				found[f], rest = Number(b[1]), after
			}
			before = len(t) - len(rest)
		}
		for name := range names {
			if len(found) == 0 && samePairs(name, t) {
				found[name] = Number(m[1])
				break
			}
		}
	}
	return found
}

// samePairs reports whether a line has all pairs of a name, in order, and further ones. A pair is a word with its
// number. The words of the line may be longer than those of the name.
func samePairs(name, line string) bool {
	want, rest := pairs(name), pairs(line)
	if len(want) < 2 || len(rest) <= len(want) {
		return false
	}
	for _, w := range want {
		at := -1
		for i, p := range rest {
			if strings.HasPrefix(p[0], w[0]) && p[1] == w[1] {
				at = i
				break
			}
		}
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

// pairs returns the words of a text that are followed by a number, each with its number.
func pairs(t string) (all [][2]string) {
	for len(all) < 12 {
		m := pair.FindStringSubmatch(t)
		if m == nil {
			break
		}
		all = append(all, [2]string{strings.ToLower(m[1]), strings.TrimLeft(m[2], "0")})
		t = t[pair.FindStringIndex(t)[1]:]
	}
	return all
}

// number reports whether a text may be the number of a rank.
func number(t string) bool {
	for i := range len(t) {
		if t[i] < '0' || t[i] > '9' {
			return false
		}
	}
	return t != "" && len(t) <= markDigits
}
