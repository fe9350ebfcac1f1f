// Package telling knows which lines of a log may be signs of failure.
package telling

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
)

// Of returns a function that reports whether a line may be a sign of failure according to the rules of
// book, or the beginning of such a sign.
func Of(book *rule.Book) func(text string) bool {
	words := append(beginnings[:len(beginnings):len(beginnings)], slices.Concat(endreport.Needles(), logtext.ForeignNeedles())...)
	all := book.Words(words)
	return func(text string) bool { return all.Contains(text) || pytrace.ErrorLine(text) }
}

// beginnings has words with which exceptions begin, in lower case.
var beginnings = []string{"traceback (most recent call last)", "terminate called", "terminating ", "panicked at", "panic: ", "fatal error: ",
	"error: loaderror", "fortran runtime error", "forrtl: ", "root cause (first", "exception in thread ", " exiting: ca"}
