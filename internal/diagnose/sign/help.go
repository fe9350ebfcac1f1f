package sign

import (
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// worked is how many ordinary lines after a help text show that the program went on.
const worked = 2

// field matches a line of a help text that gives the reason of the operating system.
var field = textmatch.New(`^ {2,}(?:[Ee]rror|[Rr]eason|[Ee]rrno|[Ff]ailure|[Dd]escription)\w*: +\S`)

// passOver marks as covered the reasons in those help texts of Open MPI after which the program went on. A help text is
// between two separators. If the program went on, the lines after the text announce no error.
func (f *finder) passOver() {
	for i, t := range f.Lines {
		if f.covered[i] || len(t) < 3 || t[0] != ' ' || !field.MatchString(t) {
			continue
		}
		top, end := i, i
		for top > 0 && i-top < helpLines && !message.Separator(f.Lines[top]) {
			top--
		}
		for end < len(f.Lines)-1 && end-i < helpLines && !message.Separator(f.Lines[end]) {
			end++
		}
		if !message.Separator(f.Lines[top]) || !message.Separator(f.Lines[end]) {
			continue
		}
		n := 0
		for _, t := range f.Lines[end+1 : min(len(f.Lines), end+1+2*helpLines)] {
			if message.Announces(t) || message.Teardown.MatchString(t) || message.Separator(t) || f.book.Candidate(t) {
				n = 0
				break
			}
			if outlook.Ordinary(t) || len(t) > 1 && t[0] == ' ' {
				n++
			}
		}
		f.covered[i] = n >= worked
	}
}
