package pytrace

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// loader matches the name of a file with code that loads checkpoints.
var loader = textmatch.New(`(?i)(?:^|/)(?:resum|restart|restor|checkpoint)[\w-]*\.py$`)

// Loads reports whether the exception was raised in code that loads checkpoints, as the names of its files tell.
func (e *Exception) Loads() bool {
	return slices.ContainsFunc(e.Frames, func(f Frame) bool { return loader.MatchString(f.File) })
}

// Carried returns the exception that e carries in its message, or e itself if it carries none.
func (e *Exception) Carried() *Exception {
	class, rest, ok := strings.Cut(e.Message, ": ")
	if !ok || !Wrappers[e.Base()] || !ErrorLine(e.Message) {
		return e
	}
	inner := *e
	inner.Class, inner.Message = class, rest
	inner.Text = e.Message + "\n" + e.Text
	return &inner
}

// represents reports whether a line is an exception whose message is the representation of another exception.
func represents(t string) bool {
	said, ok := strings.CutPrefix(t, "Exception: ")
	return ok && representation.MatchString(said)
}

// represented replaces an exception by the one whose representation is its message, as in "Exception: 'KeyError(1)'". A
// worker may report its exception like this.
func (e *Exception) represented() {
	if m := representation.FindStringSubmatch(e.Message); m != nil {
		e.Class, e.Message = m[1], strings.Trim(m[2], `'"\\`)
		e.Text = strings.TrimSuffix(e.Class+": "+e.Message, ": ")
	}
}

var representation = textmatch.New(`^['"]?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt))\((.*?),?\)['"]?$`)
