package jobfile

import (
	"fmt"
	"slices"
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

// unknown says that a key is none, and which may have been meant.
func unknown(group, key string) *fault {
	known := keys(group)
	what, hint := fmt.Sprintf("unknown key %s", quote(key)), "the keys are: "+strings.Join(known, ", ")
	if group != "" {
		what, hint = what+" in "+group, fmt.Sprintf("the keys of %s are: %s", group, strings.Join(known, ", "))
	}
	for _, f := range table {
		parent, name, inside := strings.Cut(f.Name, ".")
		switch {
		case group == "" && f.Key && f.Short != "" && key == f.Short:
			return faultf("", "%s, did you mean %q?", what, f.Name)
		case group == "" && f.Key && inside && (key == name || key == f.Name) && !slices.Contains(known, key):
			return faultf("", "%s, did you mean %q inside of %q?", what, name, parent)
		case group != "" && f.Key && f.Kind != Group && !inside && key == f.Name:
			return faultf(fmt.Sprintf("write %s further left, beside %s", key, group), "%s, which is a key of the file itself", what)
		}
	}
	if near := didYouMean(key, known); near != "" {
		return faultf("", "%s%s", what, near)
	}
	return faultf(hint, "%s", what)
}

// quote quotes what a user wrote, cut where it is very long.
func quote(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", string([]rune(text)[:most]))
}
