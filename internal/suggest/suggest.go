// Package suggest finds the correct name for a mistyped one.
package suggest

import (
	"fmt"
	"strings"
)

// mostText bounds the text that is compared: names are shorter, and a comparison takes time
// in the square of the length.
const mostText = 40

// Nearest returns the one of names that is most similar to text, or "" if none is similar
// enough. Upper and lower case count as the same, and so do "_" and "-".
func Nearest(text string, names []string) string {
	if text == "" || len(text) > mostText {
		return ""
	}
	text = folded(text)
	best, least, common := "", 0, 0
	for _, name := range names {
		plain := folded(name)
		d, same := Distance(text, plain), prefix(text, plain)
		switch {
		case len(plain) < 2:
			continue
		case d <= mostSlips(plain, same):
		case len(text) >= 4 && same == len(text): // the rest was left out, as in "checkpoint" for "checkpoint-dir"
			d = mostSlips(plain, same) + 1
		default:
			continue
		}
		if best == "" || d < least || d == least && same > common {
			best, least, common = name, d, same
		}
	}
	return best
}

// mostSlips returns how many mistakes a name can have and still be recognised by its other letters.
// The first letters tell most.
func mostSlips(name string, prefix int) int {
	switch {
	case len(name) < 4:
		return 1
	case prefix < 4:
		return 2
	}
	return 3
}

// prefix returns the length of the prefix that a and b have in common.
func prefix(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func folded(text string) string { return strings.ReplaceAll(strings.ToLower(text), "_", "-") }

// DidYouMean returns `, did you mean "name"?` with the name that Nearest finds. It returns ""
// if Nearest finds none.
func DidYouMean(text string, names []string) string {
	if name := Nearest(text, names); name != "" {
		return fmt.Sprintf(", did you mean %q?", name)
	}
	return ""
}

// Distance returns how many bytes must be inserted, removed, replaced, or swapped with their
// neighbour to get from a to b: the optimal string alignment distance.
func Distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differs := 1
			if a[i-1] == b[j-1] {
				differs = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
