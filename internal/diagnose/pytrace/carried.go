package pytrace

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// loader is the name of a file with code that loads checkpoints.
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
