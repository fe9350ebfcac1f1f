package jobfile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/xrash/smetrics"
)

// nearness is the Jaro-Winkler similarity, 0 to 1, from which a name is taken
// for a slip of another: slips of one or two letters come out above it, other
// words below.
const nearness = 0.85

// near returns the one of names that text is most likely a slip of, or "".
func near(text string, names []string) string {
	if len(text) > 40 {
		return "" // no slip of any name; the comparison is quadratic
	}
	text = strings.ToLower(strings.ReplaceAll(text, "_", "-"))
	best, score := "", nearness
	for _, name := range names {
		if s := smetrics.JaroWinkler(text, name, 0.7, 4); s >= score {
			best, score = name, s
		}
	}
	return best
}

// didYouMean returns `, did you mean "name"?`, or "" where no name is near.
func didYouMean(text string, names []string) string {
	if name := near(text, names); name != "" {
		return fmt.Sprintf(", did you mean %q?", name)
	}
	return ""
}

// quote quotes what a user wrote, cut where it is very long.
func quote(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", string([]rune(text)[:most]))
}
