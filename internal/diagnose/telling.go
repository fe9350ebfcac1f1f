package diagnose

import (
	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// Telling returns a function that reports whether a line may be a sign of failure according to the rules of
// book, or the beginning of such a sign.
func Telling(book *rules.Book) func(text string) bool {
	words := append(beginnings[:len(beginnings):len(beginnings)], endreport.Needles()...)
	all := book.Words(words)
	return func(text string) bool { return all.Contains(text) || pytrace.ErrorLine(text) }
}

// beginnings are the words with which exceptions announce themselves.
var beginnings = []string{"traceback (most recent call last)", "terminate called", "terminating ", "panicked at", "panic: ", "fatal error: ",
	"error: loaderror", "fortran runtime error", "forrtl: ", "root cause (first", "exception in thread "}
