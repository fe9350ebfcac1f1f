package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var anyNumber = textmatch.New(`\d+`)

// Alike reports whether two titles differ only in numbers. It ignores what follows "; Last command".
func Alike(a, b string) bool {
	a, _, _ = strings.Cut(a, "; Last command")
	b, _, _ = strings.Cut(b, "; Last command")
	a, b = anyNumber.ReplaceAllString(a, "#"), anyNumber.ReplaceAllString(b, "#")
	return a == b
}

// Shortened returns names with each value shortened for use in a sentence.
func Shortened(names map[string]string) map[string]string {
	out := make(map[string]string, len(names))
	for k, v := range names {
		out[k] = Short(v, 200)
	}
	return out
}
