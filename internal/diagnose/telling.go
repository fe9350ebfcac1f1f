package diagnose

import (
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Telling reports whether a line may be a sign, or begin one.
func Telling(text string) bool {
	return rules.Candidate(text) || len(reporters.Find(text, nil)) > 0 || len(beginnings.Find(text, nil)) > 0 || errorLine(text)
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
