package diagnose

import (
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Telling returns a function that reports whether a line may be a sign by the rules of a book, or begin one.
func Telling(book *rules.Book) func(text string) bool {
	return func(text string) bool { return book.Candidate(text) || announcing(text) }
}

// announcing reports whether a line may begin a sign, whatever the rules are.
func announcing(text string) bool {
	return len(reporters.Find(text, nil)) > 0 || len(beginnings.Find(text, nil)) > 0 || pytrace.ErrorLine(text)
}

// beginnings are the words with which exceptions announce themselves.
var beginnings = func() *textmatch.Index {
	x := &textmatch.Index{}
	for i, text := range []string{"traceback (most recent call last)", "terminate called", "terminating ", "panicked at", "panic: ", "fatal error: ",
		"error: loaderror", "fortran runtime error", "forrtl: ", "root cause (first"} {
		x.Add(text, i)
	}
	return x
}()
