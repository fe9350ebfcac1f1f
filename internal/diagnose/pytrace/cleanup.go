package pytrace

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	// duringHandling is the line between two exceptions if the second was raised in the handler of the first.
	duringHandling = "During handling of the above exception, another exception occurred:"
	// cleansUp matches a statement with which a handler cleans up or reports.
	cleansUp = textmatch.New(`(?i)\b(?:os|shutil|pathlib|path|tmp\w*|\w*lock\w*|\w*log\w*|wandb|writer|dist|mlflow|\w*tracker)\.\w+\(|\b\w*(?:remove|unlink|rmtree|close|clean_?up|shutdown|finish|destroy\w*|notify|rollback|release|teardown)\(`)
)

// Cleanups returns how many exceptions at the end of a chain were raised by mistake while the handler of another
// one cleaned up.
func Cleanups(text []string, chain []Exception) (n int) {
	for k := len(chain) - 1; k > 0; k-- {
		e, before := &chain[k], &chain[k-1]
		if len(e.Frames) == 0 || len(before.Frames) < 2 || !slices.Contains(text[before.To:e.From], duringHandling) {
			break
		}
		in, last := e.Frames[0], e.Frames[len(e.Frames)-1]
		if in.Function != before.Frames[0].Function || strings.HasPrefix(last.Source, "raise") || !cleansUp.MatchString(in.Source) || cleansUp.MatchString(before.Frames[0].Source) {
			break
		}
		n++
	}
	return n
}

// Harmless reports whether an exception is no failure: the program ends itself with code 0, or the thread that sends
// the items of a queue finds that the process which reads the queue has ended.
func (e *Exception) Harmless() bool {
	switch e.Base() {
	case "SystemExit":
		return len(e.Frames) > 0 && (e.Message == "" || e.Message == "0" || e.Message == "None")
	case "BrokenPipeError", "ConnectionResetError":
		return slices.ContainsFunc(e.Frames, func(f Frame) bool {
			return f.Function == "_feed" && strings.HasSuffix(f.File, "multiprocessing/queues.py")
		})
	}
	return false
}
