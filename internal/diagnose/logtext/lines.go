package logtext

import (
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// LastOf returns copies of the last n lines that are not blank.
func LastOf(lines []job.Line, n int) []job.Line {
	var out []job.Line
	for i := len(lines) - 1; i >= 0 && len(out) < n; i-- {
		if strings.TrimSpace(lines[i].Text) != "" {
			out = append([]job.Line{lines[i]}, out...)
		}
	}
	return out
}

// Undated returns copies of lines without their times. The times that Read finds in logs do not have the true year.
func Undated(lines []job.Line) []job.Line {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i].Time = time.Time{}
	}
	return lines
}
