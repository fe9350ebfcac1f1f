// Package nativetrace reads the messages by which programs in C++, Rust, Go, Java, JavaScript, Julia and Fortran
// themselves announce that they end. It also reads the traces of Python's fault handler and of pytest.
package nativetrace

import (
	"fmt"
	"path"
	"slices"
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

// Death is the end of a program that the program announces.
type Death struct {
	Class string // of the exception, without its module
	Title string // what is shown to people
	Text  string // what rules look at
	Where string // the place in the program, or empty
	From  int    // its first line
	At    int    // the line that says most
	To    int    // the line after its last
	Said  bool   // the text is a message of the program itself, without a class
}

// Find returns the deaths in a text, in their order. It skips line i if covered[i] is true.
func Find(text []string, covered []bool) []*Death {
	var all []*Death
	for i, t := range text {
		if covered[i] || t == "" {
			continue
		}
		if strings.Contains(t, ": ") || strings.Contains(t, "thread ") || strings.Contains(t, "HDF5-DIAG") {
			if inner, head := pytrace.Untag(text, i, announces); head > 0 {
				for _, g := range Find(inner, make([]bool, len(inner)))[:] {
					if g.From == 0 {
						g.From, g.At, g.To = g.From+i, g.At+i, g.To+i
						all = append(all, g)
					}
				}
				continue
			}
		}
		var g *Death
		switch {
		case strings.Contains(t, "- Processor ") && strings.Contains(t, " Exiting: "):
			g = charm(text, i)
		case strings.HasPrefix(t, "LLVM ERROR: "):
			g = &Death{Class: "LLVM error", Title: t, Text: t, From: i, At: i}
		case strings.Contains(t, "HDF5-DIAG: Error detected in HDF5"):
			g = hdf5(text, i)
		case strings.HasSuffix(t, ".") && strings.Contains(t, " line ") && strings.Contains(t, " at "):
			g = perl(text, i)
		case strings.HasPrefix(t, "Fatal Python error: "):
			g = faulted(text, i)
		case strings.Contains(t, "terminat"):
			g = cpp(text, i)
		case (strings.Contains(t, "ncaught") || strings.Contains(t, "nhandled") || strings.Contains(t, "raise") || strings.Contains(t, "died ")) && !strings.HasPrefix(t, "Uncaught ") && unhandledLine.MatchString(t):
			g = unhandled(text, i)
		case strings.HasPrefix(t, "thread '"):
			g = rust(text, i)
		case strings.HasPrefix(t, "panic: ") || strings.HasPrefix(t, "fatal error: "):
			g = golang(text, i)
		case strings.HasPrefix(t, "E   "):
			g = pytest(text, i)
		case strings.HasPrefix(t, "Exception in thread "):
			g = java(text, i)
		case strings.Contains(t, "Error [") || strings.HasPrefix(t, "Uncaught "):
			g = javascript(text, i)
		case strings.HasPrefix(t, "ERROR: "):
			g = juliaError(text, i)
		case strings.HasPrefix(t, "Fortran runtime error") || strings.HasPrefix(t, "forrtl: severe"):
			g = fortranError(text, i)
		}
		if g != nil {
			g.To = max(g.To, g.At+1)
			all = append(all, g)
		}
	}
	return all
}

// announces matches the words with which programs announce their end. A launcher or a logger may have written a tag
// before them.
var announces = textmatch.New(`(?:panic: |fatal error: |LLVM ERROR: |Fatal Python error: |thread '[^']*' (?:\(\d+\) )?panicked at |Exception in thread "|Fortran runtime error: |forrtl: severe )`)

// faulted reads what Python's fault handler prints. The innermost frame comes first.
func faulted(text []string, i int) *Death {
	g := &Death{Title: text[i], Text: text[i], From: i, At: i}
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
	g.Where = e.Where()
	return g
}

func cpp(text []string, i int) *Death {
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

func native(class, message string, from, at int) *Death {
	g := &Death{Class: class, Title: class, From: from, At: at}
	if message != "" && message != class {
		g.Title += ": " + message
	}
	g.Text = g.Title
	return g
}

func rust(text []string, i int) *Death {
	m := rustLine.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	if m[2] == "" {
		return &Death{Class: "rust panic", Title: "stack overflow", Text: text[i], From: i, At: i}
	}
	if old := rustOld.FindStringSubmatch(m[2]); old != nil {
		return &Death{Class: "rust panic", Title: "panic: " + old[1], Text: "panic: " + old[1], Where: fmt.Sprintf("%s line %s", old[2], old[3]), From: i, At: i}
	}
	g := &Death{Class: "rust panic", Title: "panic", Text: "panic", From: i, At: i}
	if at := rustAt.FindStringSubmatch(m[2]); at != nil {
		g.Where = fmt.Sprintf("%s line %s", at[1], at[2])
	}
	for j := i + 1; j < len(text) && j <= i+4; j++ {
		t := text[j]
		if t == "" || strings.HasPrefix(t, "note:") || strings.HasPrefix(t, "stack backtrace") {
			break
		}
		if j == i+1 {
			g.Title = "panic: " + t
		}
		g.Text += "\n" + t
		g.At = j
	}
	return g
}

// goHead is how many lines may come between a fatal error of Go and the first stack of a goroutine.
const goHead = 24

func golang(text []string, i int) *Death {
	m := goPanic.FindStringSubmatch(text[i])
	g := &Death{Class: "go panic", Title: text[i], Text: text[i], From: i, At: i}
	if m == nil {
		return nil
	}
	stack := false
	for j := i + 1; j < len(text) && j <= i+60; j++ {
		t := text[j]
		switch {
		case strings.HasPrefix(t, "[signal "):
			g.Text += "\n" + t
		case strings.HasPrefix(t, "goroutine "):
			if stack {
				j = len(text)
			}
			stack = true
		case !stack && j > i+goHead:
			return nil
		}
		if at := goFrame.FindStringSubmatch(t); at != nil && stack && !strings.Contains(t, "/src/runtime/") {
			g.Where = fmt.Sprintf("%s line %s", path.Base(at[1]), at[2])
			break
		}
	}
	if !stack {
		return nil
	}
	for g.To = i + 1; g.To < len(text) && goDump.MatchString(text[g.To]); g.To++ {
	}
	return g
}

// goDump matches the lines in which Go lists its goroutines.
var goDump = textmatch.New(`^$|^\t|^\[signal |^(?:goroutine |runtime stack:|created by |rax|r[a-z0-9]+ +0x)|^[\w./*()-]+\(.*\)$`)

func juliaError(text []string, i int) *Death {
	m := julia.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	g := &Death{Class: m[1], Title: strings.TrimPrefix(strings.TrimPrefix(text[i], "ERROR: "), "LoadError: "), Text: text[i], From: i, At: i}
	if g.Class == "" {
		g.Class = "ErrorException"
	}
	trace := false
	for j := i + 1; j < len(text) && j <= i+60; j++ {
		if strings.HasPrefix(text[j], "Stacktrace:") {
			trace = true
		}
		if !trace && j <= i+3 {
			g.Text += "\n" + text[j]
		}
		if at := juliaAt.FindStringSubmatch(text[j]); at != nil {
			g.Where = fmt.Sprintf("%s line %s", path.Base(at[1]), at[2])
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

// pytestLine matches the exception of a test as pytest prints it.
var pytestLine = textmatch.New(`^E {3,}((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failed|Exit)?): (.*)$`)

// pytestAssert matches an assertion of a test that failed, as pytest prints it.
var pytestAssert = textmatch.New(`^E {3,}assert \S`)

// pytest reads an exception or a failed assertion of a test.
func pytest(text []string, i int) *Death {
	m := pytestLine.FindStringSubmatch(text[i])
	if m == nil && pytestAssert.MatchString(text[i]) {
		return native("AssertionError", strings.TrimSpace(text[i][1:]), i, i)
	}
	if m == nil {
		return nil
	}
	return native(pytrace.Base(m[1]), m[2], i, i)
}

// javascriptLine matches an exception of Node.js.
var javascriptLine = textmatch.New(`^(?:Uncaught )?([A-Z]\w*Error|Error)(?: \[(\w+)\])?: (.*)$`)

// javascript reads an uncaught exception of a JavaScript program.
func javascript(text []string, i int) *Death {
	m := javascriptLine.FindStringSubmatch(text[i])
	if m == nil || i+1 >= len(text) || !strings.HasPrefix(text[i+1], "    at ") {
		return nil
	}
	return native(m[1], m[3], i, i)
}

var (
	javaLine  = textmatch.New(`^Exception in thread "[^"]*" ([\w.$]+)(?:: (.*))?$`)
	javaCause = textmatch.New(`^Caused by: ([\w.$]+)(?:: (.*))?$`)
	javaFrame = textmatch.New(`^\s+(?:at |\.\.\. \d+ more)`)
)

// javaMore is how many further lines the message of an exception may have.
const javaMore = 4

// java reads an uncaught exception of a Java program. If the exception has a cause, java returns the innermost cause.
func java(text []string, i int) *Death {
	m := javaLine.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	g := native(pytrace.Base(m[1]), m[2], i, i)
	g.Text += "\n" + text[i]
	g.To = i + 1
	for j := i + 1; j < len(text); j++ {
		switch c := javaCause.FindStringSubmatch(text[j]); {
		case c != nil:
			to := g.To
			g = native(pytrace.Base(c[1]), c[2], i, j)
			g.Text += "\n" + text[i]
			g.To = max(to, j+1)
		case !javaFrame.MatchString(text[j]):
			if j > g.To || j > i+javaMore || j+1 >= len(text) || text[j] == "" || !slices.ContainsFunc(text[j+1:min(len(text), j+1+javaMore)], javaFrame.MatchString) {
				return g
			}
			g.Text += "\n" + text[j] // the message goes on
			g.To = j + 1
		default:
			g.To = j + 1
		}
	}
	return g
}

func fortranError(text []string, i int) *Death {
	m := fortran.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	g := &Death{Class: "fortran runtime error", Title: text[i], Text: text[i], From: i, At: i}
	if strings.HasPrefix(m[1], "forrtl") {
		g.Class = "forrtl severe"
	}
	if i > 0 {
		if at := fortAt.FindStringSubmatch(text[i-1]); at != nil {
			g.Where, g.From = fmt.Sprintf("%s line %s", path.Base(at[2]), at[1]), i-1
		}
	}
	return g
}
