package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// mostFrames is the maximum number of frames of a group's stack that are shown.
const mostFrames = 12

// StackLines returns lines that say at which places in the program the ranks of a run are. For each group of
// ranks, it returns a line, followed by the stack that the ranks of the group have in common. No line has
// control characters.
func StackLines(s home.Stacks) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, text.Printable(fmt.Sprintf(format, args...))) }
	for _, g := range s.Groups {
		state := ""
		if g.State != "" {
			state = " (" + string(g.State) + ")"
		}
		add("%s in %s%s", text.Ranks(g.Ranks), g.Where, state)
		frames := slices.DeleteFunc(slices.Clone(g.Frames), nameless)
		for i, f := range frames {
			if i == mostFrames {
				add("    and %s", text.Count(len(frames)-i, "more frame"))
				break
			}
			add("    %s", frameWords(f))
		}
	}
	for _, r := range s.Stacks {
		if r.Error != "" {
			add("note: rank %d on %s: %s", r.Rank, r.Host, r.Error)
			break // the error is usually the same for all ranks
		}
	}
	if len(s.Missing) > 0 {
		add("no answer from %s", text.Ranks(s.Missing))
	}
	return lines
}

// nameless reports whether the tool has not found the name of a frame's function.
func nameless(f job.Frame) bool { return f.Function == "" || f.Function == "??" }

// frameWords describes a frame, as in "average (train.py:120)".
func frameWords(f job.Frame) string {
	where := f.File
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	if where == "" {
		return f.Function
	}
	return f.Function + " (" + where + ")"
}

// PrintStacks prints, for people, at which places in the program the ranks of a run are.
func PrintStacks(w io.Writer, s home.Stacks) error {
	found := len(s.Stacks)
	lines := append([]string{fmt.Sprintf("run %s, attempt %d: stacks of %s, taken at %s in %s", s.Run, s.Attempt, text.Count(found, "rank"), s.At.Local().Format(time.TimeOnly), time.Duration(s.Took).Round(10*time.Millisecond))}, StackLines(s)...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
