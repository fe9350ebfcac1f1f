package nativetrace

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	hdf5Frame = textmatch.New(`#\d{3}: \S+ line \d+ in \w+\(\): (.*)`)
	hdf5Cause = textmatch.New(`error message = '([^']+)'`)
	hdf5Rest  = textmatch.New(`^ *#\d{3}: |^ {2,}(?:major|minor): |^, |^ {2,}\S*(?:name|time|errno|error message|flags|buf|offset|bytes|size)\b.* = `)
	hdf5File  = textmatch.New(`name = '([^']+)'`)
)

// hdf5Lines is how many lines of a stack of errors are read at most.
const hdf5Lines = 80

// hdf5 reads a stack of errors that the library HDF5 prints. The innermost error comes last. If the stack has a message
// of the operating system, that message becomes the title.
func hdf5(text []string, i int) *Death {
	g := &Death{Class: "HDF5 error", From: i, At: -1}
	file, creates := "", false
	for j := i + 1; j < len(text) && j <= i+hdf5Lines; j++ {
		t := text[j]
		m := hdf5Frame.FindStringSubmatch(t)
		c := hdf5Cause.FindStringSubmatch(t)
		if m == nil && c == nil && !hdf5Rest.MatchString(t) {
			break
		}
		if f := hdf5File.FindStringSubmatch(t); f != nil {
			file = f[1]
		}
		creates = creates || strings.Contains(t, " in H5Fcreate")
		switch {
		case c != nil:
			g.Title, g.At = c[1], j
		case m != nil && !strings.Contains(m[1], ": time = "):
			g.Title, g.At = m[1], j
		}
		g.To = j + 1
		if c != nil {
			break
		}
	}
	if g.At < 0 {
		return nil
	}
	if creates {
		g.Title = "cannot create file: " + g.Title
	}
	g.Title = "HDF5 error: " + g.Title
	if file != "" {
		g.Title += ": '" + file + "'"
	}
	g.Text = g.Title
	return g
}
