package inventory

import (
	"fmt"
	"strings"
)

// didYouMean returns `, did you mean "name"?` for the one of names that text is
// most likely a slip of, or "".
func didYouMean(text string, names []string) string {
	if len(text) > 40 {
		return "" // no slip of any name; the comparison is quadratic
	}
	best, least := "", 3 // two letters wrong are a slip, three another word
	for _, name := range names {
		if d := distance(strings.ToLower(text), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance is how many letters must be put in, left out, changed, or swapped
// with their neighbour to get from a to b.
func distance(a, b string) int {
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
