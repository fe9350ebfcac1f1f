package diagnose

import (
	"fmt"
	"path"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	faultFrame = textmatch.New(`^  File "([^"]+)", line (\d+) in (.*)`)
	thrown     = textmatch.New(`terminate called after throwing an instance of '([^']+)'`)
	libcxx     = textmatch.New(`terminating (?:with|due to) uncaught exception of type (\w+(?:::\w+)*)(?:: (.*))?`)
	rustLine   = textmatch.New(`^thread '([^']*)'(?: \(\d+\))? (?:has overflowed its stack|panicked at (.*))`)
	rustAt     = textmatch.New(`^(\S+):(\d+):\d+:?$`)
	rustOld    = textmatch.New(`^'(.*)', (\S+):(\d+):\d+$`)
	goPanic    = textmatch.New(`^(?:panic|fatal error): (.*)`)
	goFrame    = textmatch.New(`^\t(\S+\.go):(\d+)`)
	julia      = textmatch.New(`^ERROR: (?:LoadError: |InitError: |TaskFailedException|On worker \d+:)*\s*(\w+(?:Error|Exception|Mismatch))?(.*)`)
	juliaAt    = textmatch.New(`^in expression starting at (\S+):(\d+)`)
	fortran    = textmatch.New(`^(Fortran runtime error|forrtl: severe \(\d+\)): ?(.*)`)
	fortAt     = textmatch.New(`^At line (\d+) of file (\S+)`)
)

// natives finds the deaths of programs in C++, Rust, Go, Julia and Fortran
// that announce themselves.
func natives(text []string, covered []bool) []*sign {
	var signs []*sign
	for i, t := range text {
		if covered[i] || t == "" {
			continue
		}
		var g *sign
		switch {
		case strings.HasPrefix(t, "Fatal Python error: "):
			g = faulted(text, i)
		case strings.Contains(t, "terminat"):
			g = cpp(text, i)
		case strings.HasPrefix(t, "thread '"):
			g = rust(text, i)
		case strings.HasPrefix(t, "panic: ") || strings.HasPrefix(t, "fatal error: "):
			g = golang(text, i)
		case strings.HasPrefix(t, "E   "):
			g = pytest(text, i)
		case strings.HasPrefix(t, "Exception in thread "):
			g = java(text, i)
		case strings.HasPrefix(t, "ERROR: "):
			g = juliaError(text, i)
		case strings.HasPrefix(t, "Fortran runtime error") || strings.HasPrefix(t, "forrtl: severe"):
			g = fortranError(text, i)
		}
		if g != nil {
			g.to = max(g.to, g.at+1)
			signs = append(signs, g)
		}
	}
	return signs
}

// faulted reads what Python's fault handler prints: the innermost frame first.
func faulted(text []string, i int) *sign {
	g := &sign{title: text[i], text: text[i], from: i, at: i}
	var e pytrace.Exception
	for j := i + 1; j < len(text) && j <= i+60; j++ {
		t := text[j]
		switch {
		case faultFrame.MatchString(t):
			m := faultFrame.FindStringSubmatch(t)
			e.Frames = append([]pytrace.Frame{{File: m[1], Line: logtext.Number(m[2]), Function: m[3]}}, e.Frames...)
		case len(e.Frames) > 0:
			j = len(text)
		}
	}
	g.where = e.Where()
	return g
}

func cpp(text []string, i int) *sign {
	m := thrown.FindStringSubmatch(text[i])
	if m == nil {
		if m = libcxx.FindStringSubmatch(text[i]); m == nil {
			return nil
		}
		return native(m[1], m[2], i, i)
	}
	for j := i + 1; j < len(text) && j <= i+4; j++ {
		if what, ok := strings.CutPrefix(strings.TrimSpace(text[j]), "what():"); ok {
			return native(m[1], strings.TrimSpace(what), i, j)
		}
	}
	return native(m[1], "", i, i)
}

func native(class, message string, from, at int) *sign {
	g := &sign{class: class, title: class, from: from, at: at}
	if message != "" && message != class {
		g.title += ": " + message
	}
	g.text = g.title
	return g
}

func rust(text []string, i int) *sign {
	m := rustLine.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	if m[2] == "" {
		return &sign{class: "rust panic", title: "stack overflow", text: "panic: stack overflow", from: i, at: i}
	}
	if old := rustOld.FindStringSubmatch(m[2]); old != nil {
		return &sign{class: "rust panic", title: "panic: " + old[1], text: "panic: " + old[1], where: fmt.Sprintf("%s line %s", old[2], old[3]), from: i, at: i}
	}
	g := &sign{class: "rust panic", title: "panic", text: "panic", from: i, at: i}
	if at := rustAt.FindStringSubmatch(m[2]); at != nil {
		g.where = fmt.Sprintf("%s line %s", at[1], at[2])
	}
	for j := i + 1; j < len(text) && j <= i+4; j++ {
		t := text[j]
		if t == "" || strings.HasPrefix(t, "note:") || strings.HasPrefix(t, "stack backtrace") {
			break
		}
		if j == i+1 {
			g.title = "panic: " + t
		}
		g.text += "\n" + t
		g.at = j
	}
	return g
}

func golang(text []string, i int) *sign {
	m := goPanic.FindStringSubmatch(text[i])
	g := &sign{class: "go panic", title: text[i], text: text[i], from: i, at: i}
	if m == nil {
		return nil
	}
	stack := false
	for j := i + 1; j < len(text) && j <= i+60; j++ {
		t := text[j]
		switch {
		case strings.HasPrefix(t, "[signal "):
			g.text += "\n" + t
		case strings.HasPrefix(t, "goroutine "):
			if stack {
				return g
			}
			stack = true
		case !stack && j > i+8:
			return nil
		}
		if at := goFrame.FindStringSubmatch(t); at != nil && stack && !strings.Contains(t, "/src/runtime/") {
			g.where = fmt.Sprintf("%s line %s", path.Base(at[1]), at[2])
			return g
		}
	}
	if !stack {
		return nil
	}
	return g
}

func juliaError(text []string, i int) *sign {
	m := julia.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	g := &sign{class: m[1], title: strings.TrimPrefix(strings.TrimPrefix(text[i], "ERROR: "), "LoadError: "), text: text[i], from: i, at: i}
	if g.class == "" {
		g.class = "ErrorException"
	}
	trace := false
	for j := i + 1; j < len(text) && j <= i+60; j++ {
		if strings.HasPrefix(text[j], "Stacktrace:") {
			trace = true
		}
		if !trace && j <= i+3 {
			g.text += "\n" + text[j]
		}
		if at := juliaAt.FindStringSubmatch(text[j]); at != nil {
			g.where = fmt.Sprintf("%s line %s", path.Base(at[1]), at[2])
			return g
		}
		if !trace && j > i+10 {
			break
		}
	}
	if !trace {
		return nil
	}
	return g
}

// pytestLine is the exception of a test, as pytest shows it.
var pytestLine = textmatch.New(`^E {3,}((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failed|Exit)?): (.*)$`)

// pytest reads the exception that a test of pytest has raised.
func pytest(text []string, i int) *sign {
	m := pytestLine.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	return native(pytrace.Base(m[1]), m[2], i, i)
}

var (
	javaLine  = textmatch.New(`^Exception in thread "[^"]*" ([\w.$]+)(?:: (.*))?$`)
	javaCause = textmatch.New(`^Caused by: ([\w.$]+)(?:: (.*))?$`)
	javaFrame = textmatch.New(`^\s+(?:at |\.\.\. \d+ more)`)
)

// java reads an uncaught exception of a Java program. What caused it counts more than the exception.
func java(text []string, i int) *sign {
	m := javaLine.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	g := native(pytrace.Base(m[1]), m[2], i, i)
	g.text += "\n" + text[i]
	g.to = i + 1
	for j := i + 1; j < len(text); j++ {
		switch c := javaCause.FindStringSubmatch(text[j]); {
		case c != nil:
			to := g.to
			g = native(pytrace.Base(c[1]), c[2], i, j)
			g.text += "\n" + text[i]
			g.to = max(to, j+1)
		case !javaFrame.MatchString(text[j]):
			return g
		default:
			g.to = j + 1
		}
	}
	return g
}

func fortranError(text []string, i int) *sign {
	m := fortran.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	g := &sign{class: "fortran runtime error", title: text[i], text: text[i], from: i, at: i}
	if strings.HasPrefix(m[1], "forrtl") {
		g.class = "forrtl severe"
	}
	if i > 0 {
		if at := fortAt.FindStringSubmatch(text[i-1]); at != nil {
			g.where, g.from = fmt.Sprintf("%s line %s", path.Base(at[2]), at[1]), i-1
		}
	}
	return g
}
