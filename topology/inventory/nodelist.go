package inventory

import (
	"fmt"
	"strconv"
	"strings"
)

// expand returns the names of a node list in Slurm's form. The list has names with commas between them. A name
// may have numbers in brackets, as in rack[01-02]n[001-004,7]. The rightmost brackets change fastest. The
// numbers of a range have the leading zeros of its first number. expand returns at most most names.
func expand(text string, most int) ([]string, *fault) {
	var names []string
	for rest, more := text, true; more; {
		item := rest
		i := outside(rest, ',')
		if more = i >= 0; more {
			item, rest = rest[:i], rest[i+1:]
		}
		item = strings.TrimSpace(item)
		if item == "" {
			return nil, faultf("write names with single commas between, as in h1,h[2-4]", "the node list %s has an empty name", quote(text))
		}
		p, bad := parsePattern(item)
		if bad != nil {
			return nil, bad
		}
		if p.count > most-len(names) {
			return nil, faultf(fmt.Sprintf("name at most %d", most), "the node list %s names too many", quote(text))
		}
		names = p.appendTo(names)
	}
	return names, nil
}

// pattern is one item of a node list. It has literals with brackets between them, so there is one literal more
// than brackets.
type pattern struct {
	literals []string
	brackets []bracket
	count    int // number of names; if it is more than MaxHosts, it need not be exact
}

type bracket struct {
	ranges []span
	count  int
}

// span is a range of numbers, which are written with at least width digits.
type span struct {
	low, high uint64
	width     int
}

func (s span) text(n int) string {
	digits := strconv.FormatUint(s.low+uint64(n), 10)
	return strings.Repeat("0", max(0, s.width-len(digits))) + digits
}

func parsePattern(item string) (pattern, *fault) {
	const hint = "numbers stand in brackets, as in h[1-3,7]"
	p := pattern{count: 1}
	size := 0 // length of the longest name
	for rest := item; ; {
		literal, behind, opened := strings.Cut(rest, "[")
		if strings.Contains(literal, "]") {
			return p, faultf(hint, "%s has a ] without a [", quote(item))
		}
		p.literals = append(p.literals, literal)
		if size += len(literal); size > maxName {
			return p, faultf("a host's name has at most "+strconv.Itoa(maxName)+" characters", "%s is too long for a host's name", quote(item))
		}
		if !opened {
			return p, nil
		}
		inside, next, closed := strings.Cut(behind, "]")
		if !closed || strings.Contains(inside, "[") {
			return p, faultf(hint, "%s has a [ without its ]", quote(item))
		}
		b, wide, bad := parseBracket(item, inside)
		if bad != nil {
			return p, bad
		}
		size += wide
		p.brackets = append(p.brackets, b)
		if p.count *= b.count; p.count > MaxHosts {
			p.count = MaxHosts + 1
		}
		rest = next
	}
}

func parseBracket(item, inside string) (b bracket, wide int, bad *fault) {
	for part := range strings.SplitSeq(inside, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := digits(low)
		last, err2 := digits(high)
		switch {
		case err != nil || err2 != nil:
			return b, 0, faultf("write numbers and ranges of them, as in h[1-3,7]", "%s has %s in brackets", quote(item), quote(part))
		case last < first:
			return b, 0, faultf(fmt.Sprintf("write %s-%s", high, low), "the range %s of %s runs backwards", quote(part), quote(item))
		case strings.HasPrefix(high, "0") && len(high) > len(low):
			return b, 0, faultf(fmt.Sprintf("write %0*d-%s", len(high), first, high), "the range %s of %s does not show how wide its numbers are", quote(part), quote(item))
		}
		n := MaxHosts + 1
		if last-first < MaxHosts {
			n = int(last-first) + 1
		}
		b.ranges = append(b.ranges, span{low: first, high: last, width: len(low)})
		b.count = min(b.count+n, MaxHosts+1)
		wide = max(wide, len(low), len(high))
	}
	return b, wide, nil
}

// digits reads a number of up to 18 digits.
func digits(text string) (uint64, error) {
	if len(text) > 18 {
		return 0, strconv.ErrRange
	}
	if strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(text, 10, 64)
}

// appendTo appends the names of the pattern. Their number must be checked before.
func (p pattern) appendTo(names []string) []string {
	var name []byte
	var walk func(i int)
	walk = func(i int) {
		name = append(name, p.literals[i]...)
		if i == len(p.brackets) {
			names = append(names, string(name))
			return
		}
		keep := len(name)
		for _, r := range p.brackets[i].ranges {
			for n := range int(r.high-r.low) + 1 {
				name = append(name[:keep], r.text(n)...)
				walk(i + 1)
			}
		}
	}
	walk(0)
	return names
}

// repeats reads a list in which Slurm states a number for each host, as in 2(x4),1. It returns n numbers, each
// at least 1.
func repeats(text string, n int) ([]int, *fault) {
	var out []int
	for item := range strings.SplitSeq(text, ",") {
		value, times, repeated := strings.Cut(item, "(x")
		count := 1
		var bad *fault
		if repeated {
			inner, closed := strings.CutSuffix(times, ")")
			if !closed {
				return nil, faultf("it is written as 2(x4),1", "%s has no end", quote(item))
			}
			if count, bad = number("the count of hosts in "+quote(item), inner, MaxHosts); bad != nil {
				return nil, bad
			}
		}
		each, bad := number("the number for a host", value, MaxSlots)
		if bad != nil {
			return nil, bad
		}
		if count > n-len(out) {
			return nil, faultf("it is written as 2(x4),1", "%s stands for more than %d hosts", quote(text), n)
		}
		for range count {
			out = append(out, each)
		}
	}
	if len(out) < n {
		return nil, faultf("it is written as 2(x4),1", "%s stands for %d hosts, not for %d", quote(text), len(out), n)
	}
	return out, nil
}
