// Package pytrace reads the tracebacks of Python programs. It also reads chains and groups of exceptions,
// tracebacks in boxes, and tracebacks of worker processes.
package pytrace

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Exception is one exception, with its traceback or without.
type Exception struct {
	Class   string // the class with its module
	Message string // first line
	Text    string // class and whole message
	Frames  []Frame
	From    int  // the index of its first line
	At      int  // the index of the line with its class
	To      int  // the index of its last line, plus 1
	Linked  bool // the exception belongs to the exception before it
	Ignored bool // Python itself says that it has ignored or only logged the exception
	Bare    bool // the exception has no traceback
	Cut     bool // the text ends in the traceback, so that the exception is not known
	Loading bool // the lines above the traceback say that a checkpoint was being loaded
}

// Frame is a frame of a traceback.
type Frame struct {
	File, Function, Source string
	Line                   int
}

// header is the first line of a traceback.
const header = "Traceback (most recent call last):"

// headerStart matches the header of a traceback at the end of a line.
var headerStart = textmatch.New(`Traceback \(most recent call last\):$`)

var (
	FrameLine  = textmatch.New(`^\s*File "([^"]+)", line (\d+)(?:, in (.*))?$`)
	classLine  = textmatch.New(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:\((\w+)\))?(?::(?: (.*))?)?$`)
	errorClass = textmatch.New(`^(?:[A-Za-z_]\w*\.)*\w*[A-Za-z]\w*(?:Error|Exception|Interrupt|Group)(?:\(\w+\))?(?::|$)`)
	// qualified matches an exception with its module. The name of its class need not say that it is an exception.
	qualified = textmatch.New(`^(?:[a-z_]\w*\.){2,}[A-Z]\w*[a-z]: \S`)
	groupLine = textmatch.New(`^\s*(?:\| ?|\+ |\+-)`)
	libraries = textmatch.New(`/(?:site|dist)-packages/|/lib/python\d|^<frozen |/multiprocessing/|^<__array_function__|\.pyx$`)
	// more matches a line without indentation that still belongs to the message above it.
	more = textmatch.New(`^(?:CUDA kernel errors|(?i:(?:cuda|hip)\w* (?:\w+ )?(?:failed|error))\b|\[ERROR\] \d{4}-|E[A-Z]\d{4}: |For debugging consider|Compile with|nccl\w+:|Last error|Original exception| Original exception|Exception raised from|Device-side assertion|Search for|Did you mean|Hint:|Detected at|\[\./?gloo|\[\.\./)`)
)

// warning matches the beginning of what Python's module warnings prints.
var warning = textmatch.New(`^\S+:\d+: \w*Warning: `)

// Warning reports whether a line is a warning of Python. Such a line is no sign of failure.
func Warning(t string) bool {
	return strings.Contains(t, "Warning: ") && warning.MatchString(t)
}

// Base returns a class without its module.
func Base(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// Where returns the place of the innermost Frame in the job's own code. If no Frame is in the job's own
// code, it returns the place of the innermost Frame.
func (e *Exception) Where() string {
	if len(e.Frames) == 0 {
		return ""
	}
	f := e.Frames[len(e.Frames)-1]
	for i := len(e.Frames) - 1; i >= 0; i-- {
		if !libraries.MatchString(e.Frames[i].File) {
			f = e.Frames[i]
			break
		}
	}
	where := fmt.Sprintf("%s line %d", path.Base(f.File), f.Line)
	if f.Function != "" && f.Function != "<module>" {
		where += " in " + f.Function
	}
	return where
}

// Tracebacks returns every exception in text, in order.
func Tracebacks(text []string) []Exception {
	var all []Exception
	end := 0 // the index of the line after the last exception
	note := func(e Exception) {
		e.From = max(e.From, min(end, e.At)) // two exceptions have no line in common
		e.Linked = len(all) > 0 && !e.Bare && end <= e.From && linked(text, end, e.From)
		all = append(all, e)
		end = e.To
	}
	for i := 0; i < len(text); {
		switch t := text[i]; {
		case strings.HasSuffix(t, header) && strings.Contains(t, "+ Exception Group"):
			group := grouped(text, i)
			for _, e := range group {
				note(e)
				all[len(all)-1].Linked = all[len(all)-1].Linked || e.From > i
			}
			if len(group) == 0 {
				i++
				continue
			}
			i = end
		case strings.HasSuffix(t, header):
			e, next, ok := traced(text, i)
			if inner, head := Untag(text, i, headerStart); head > 0 && FrameLine.MatchString(inner[1]) {
				if e, next, ok = traced(inner, 0); ok {
					e.From, e.At, e.To = e.From+i, e.At+i, e.To+i
				}
				next += i
			}
			if ok {
				e.Ignored = i > 0 && Harmless(text[i-1])
				e.Loading = slices.ContainsFunc(text[max(0, i-loadingLines):i], loadsCheckpoint.MatchString)
				note(e)
			}
			i = next
		case ErrorLine(t), represents(t):
			e := Headless(text, i)
			e.Ignored = e.From > 0 && Harmless(text[e.From-1])
			if !e.Bare || !strings.HasSuffix(e.Class, "Warning") { // otherwise Python only warns
				note(e)
			}
			i = max(e.To, i+1)
		case strings.HasPrefix(t, "  ") && (strings.Contains(t, "Error") || strings.Contains(t, "Exception")):
			if e, ok := shifted(text, i); ok {
				note(e)
			}
			i = max(end, i+1)
		default:
			i++
		}
	}
	return all
}

// ErrorLine reports whether a line that is not indented looks like the message of an exception, even
// without a traceback above it.
func ErrorLine(t string) bool {
	if len(t) < 6 || t[0] == ' ' || t[0] >= 'a' && t[0] <= 'z' && !strings.Contains(t, ".") || strings.IndexByte(t, ' ') == 0 {
		return false
	}
	word, _, _ := strings.Cut(t, " ")
	if strings.Count(word, ".") >= 2 && word[0] >= 'a' && word[0] <= 'z' && qualified.MatchString(t) {
		return true
	}
	return (strings.Contains(word, "Error") || strings.Contains(word, "Exception") || strings.Contains(word, "Interrupt")) && errorClass.MatchString(t)
}

// loadingLines is how many lines above a traceback may say that a checkpoint is being loaded.
const loadingLines = 3

var loadsCheckpoint = textmatch.New(`(?i)\b(?:load\w*|restor\w*|resum\w*|restart\w*|continu\w*)\b.{0,40}(?:checkpoint|ckpt|\bstate\b|snapshot|\brestart|weights|\.pth?\b|\.npz|\.h5|from)`)

// Harmless reports whether the line above a traceback says that Python has ignored or only logged the exception. Such
// an exception does not end the program.
func Harmless(line string) bool {
	return strings.HasPrefix(line, "Exception ignored in") || strings.HasPrefix(line, "--- Logging error") || strings.HasPrefix(line, "Error in atexit") ||
		strings.HasPrefix(line, "Error in sys.excepthook")
}

// traced reads the traceback whose header is line i. Lines of other processes may be among its lines. The int is the
// index of the line at which to go on, and the bool is false if there is no exception.
func traced(text []string, i int) (Exception, int, bool) {
	e := Exception{From: i}
	foreign := 0 // lines of other processes
	for j := i + 1; j < len(text); j++ {
		t := text[j]
		switch {
		case t == "" || t[0] == ' ' || t[0] == '\t':
			e.indented(t)
		case strings.HasSuffix(t, header):
			return e, j, false
		case e.named(t):
			e.At = j
			e.rest(text, j)
			e.original(text)
			return e, e.To, true
		default:
			if foreign++; foreign > 30 {
				return e, i + 1, false
			}
		}
	}
	if foreign == 0 && len(e.Frames) > 0 {
		e.Class, e.Message, e.Text, e.Cut = "Exception", "the end of its traceback is missing", "Exception", true
		e.At, e.To = i, len(text)
		return e, e.To, true
	}
	return e, i + 1, false
}

// indented reads an indented line of a traceback: a frame or its source. Other lines do not matter.
func (e *Exception) indented(t string) {
	if m := FrameLine.FindStringSubmatch(t); m != nil {
		e.Frames = append(e.Frames, Frame{File: m[1], Line: logtext.Number(m[2]), Function: m[3]})
		return
	}
	if n := len(e.Frames); n > 0 && e.Frames[n-1].Source == "" {
		e.Frames[n-1].Source = strings.TrimSpace(t)
	}
}

// named reads a line such as "module.Class: message". It reports whether the line is one.
func (e *Exception) named(t string) bool {
	m := classLine.FindStringSubmatch(t)
	if m == nil {
		return false
	}
	last := Base(m[1])
	if last == m[1] && (last[0] >= 'a' && last[0] <= 'z' || strings.ToUpper(last) == last && last != "KeyboardInterrupt") {
		return false // "step: 3", "INFO: hello"
	}
	e.Class, e.Message, e.Text = m[1], m[3], t
	return true
}

// rest reads the further lines of a message.
func (e *Exception) rest(text []string, at int) {
	e.To = at + 1
	if codeOnly.MatchString(e.Message) {
		e.decoded(text, at)
		return
	}
	for j := at + 1; j < len(text) && j <= at+12; j++ {
		t := text[j]
		switch {
		case t == "":
			if e.Message != "" || j > at+1 {
				return
			}
			continue
		case strings.HasSuffix(t, header) || FrameLine.MatchString(t):
			return
		case t[0] == ' ' || t[0] == '\t' || more.MatchString(t) || strings.HasPrefix(text[j-1], "Last error:") || j == at+1 && (e.Message == "" || strings.HasSuffix(strings.TrimRight(e.Message, " "), ":") && !ErrorLine(t)) && opens(text[at], t):
			if e.Message = strings.TrimRight(e.Message, " "); e.Message == "" || strings.HasSuffix(e.Message, ":") {
				e.Message = strings.TrimSpace(e.Message + " " + strings.TrimSpace(t))
			}
			e.Text += "\n" + t
			e.To = j + 1
		default:
			return
		}
	}
}

// originalError matches the line in which NumPy, and packages like it, give the reason of a failed import. The line
// comes after much advice.
var originalError = textmatch.New(`^(?:The )?[Oo]riginal error was: *(.*)`)

// adviceLines is how many lines after the line with the class may hold the advice and the reason.
const adviceLines = 60

// original replaces the message of an ImportError by the reason that follows the advice.
func (e *Exception) original(text []string) {
	if Base(e.Class) != "ImportError" {
		return
	}
	for j := e.To; j < len(text) && j < e.At+adviceLines && !strings.HasSuffix(text[j], header); j++ {
		if m := originalError.FindStringSubmatch(text[j]); m != nil && m[1] != "" {
			e.Message, e.Text, e.To = m[1], e.Class+": "+m[1], j+1
			return
		}
	}
}

// opens reports whether line t is the beginning of a message, which the line with the class of the exception does not
// have.
func opens(class, t string) bool {
	return strings.HasSuffix(strings.TrimRight(class, " "), ":") && !strings.HasPrefix(t, "--") && !strings.HasPrefix(t, "==") && !strings.HasPrefix(t, `"""`)
}

// Headless reads an exception that has no line "Traceback". Such an exception is a syntax error, a traceback in
// a box, or a message that the program itself has printed. i is the index of the line with its class.
func Headless(text []string, i int) Exception {
	e := Exception{From: i, At: i, Bare: true}
	e.named(text[i])
	e.represented()
	e.rest(text, i)
	e.original(text)
	for j := i - 1; j >= 0 && j >= i-60; j-- {
		t := text[j]
		if strings.HasPrefix(t, "╰") || strings.HasPrefix(t, "│") || strings.HasPrefix(t, "╭") {
			e.From, e.Bare = j, false
			if strings.HasPrefix(t, "╭") {
				break
			}
			continue
		}
		if t == "" || t[0] != ' ' {
			break
		}
		if FrameLine.MatchString(t) {
			e.From, e.Bare = j, false
		}
	}
	for _, t := range text[e.From:i] {
		e.indented(t)
	}
	return e
}

// grouped reads an exception group, which Python prints in a frame of characters. It returns the group and its first
// exception.
func grouped(text []string, i int) []Exception {
	end := i
	for end < len(text) && groupLine.MatchString(text[end]) {
		end++
	}
	inner := make([]string, 0, end-i)
	for _, t := range text[i:end] {
		t = strings.TrimLeft(t, " ")
		switch {
		case strings.HasPrefix(t, "| "):
			t = t[2:]
		case strings.HasPrefix(t, "+ Exception Group "):
			t = t[len("+ Exception Group "):]
		default:
			t = ""
		}
		inner = append(inner, t)
	}
	all := Tracebacks(inner)
	// Keep the group and its first exception. The first exception may be in groups of its own.
	if len(all) > 1 && Wrappers[Base(all[0].Class)] {
		first := 1
		for first < len(all)-1 && Wrappers[Base(all[first].Class)] {
			first++
		}
		all = append(all[:1:1], all[first])
	}
	for j := range all {
		all[j].From, all[j].At, all[j].To, all[j].Bare = all[j].From+i, all[j].At+i, all[j].To+i, false
	}
	if len(all) > 0 {
		all[len(all)-1].To = end
	}
	return all
}

var links = []*textmatch.Pattern{
	textmatch.New(`^During handling of the above exception, another exception occurred:$`),
	textmatch.New(`^The above exception was the direct cause of the following exception:$`),
	textmatch.New(`^-- Process \d+ terminated with the following error:$`),
}

// linked reports whether the exception at line to continues the exception that ended before line from.
func linked(text []string, from, to int) bool {
	if strings.HasPrefix(text[to], "Original ") {
		return to-from <= 2
	}
	found := false
	for _, t := range text[from:to] {
		switch {
		case t == "" || t == `"""`:
		case slices.ContainsFunc(links, func(l *textmatch.Pattern) bool { return l.MatchString(t) }):
			found = true
		default:
			return false
		}
	}
	return found
}

// decodedLines is how many lines after an error code may explain it.
const decodedLines = 60

var (
	// codeOnly matches a message that gives a code and does not say what it means.
	codeOnly = textmatch.New(`(?i)^\W*(?:(?:error|exit|return|status|code|errno|err|rc|failed|failure|with)\b\W*)+\d+\W*$`)
	// processTag matches the rank of the process that PETSc puts before its lines.
	processTag = textmatch.New(`^\[\d+\] `)
	// callLine matches a call through which an error passed, such as "KSPSolve() at itfunc.c:1071".
	callLine = textmatch.New(`^[\w:.]+\(\) at \S+:\d+$`)
)

// decoded adds to a message that is only an error code the lines after it, which say what the code means. It leaves out
// calls. It leaves out a line that refers to a web page if another line says more.
func (e *Exception) decoded(text []string, at int) {
	var said, referring []string
	for j := at + 1; j < len(text) && j <= at+decodedLines; j++ {
		t := text[j]
		if strings.TrimSpace(t) == "" || strings.HasSuffix(t, header) || FrameLine.MatchString(t) || message.Teardown.MatchString(t) || message.Separator(t) || message.Numbers.MatchString(t) || ErrorLine(t) {
			break
		}
		e.To = j + 1
		t = strings.TrimSpace(processTag.ReplaceAllString(t, ""))
		switch {
		case callLine.MatchString(t):
		case strings.Contains(t, "://"):
			referring = append(referring, t)
		default:
			said = append(said, t)
		}
	}
	e.Text = strings.Join(slices.Concat([]string{e.Text}, referring, said), "\n")
	if len(said) == 0 {
		said = referring
	}
	if len(said) > 0 {
		e.Message += ": " + strings.Join(said, "; ")
	}
}

// Wrappers has the classes of exceptions that only carry another exception.
var Wrappers = map[string]bool{"ProcessRaisedException": true, "RayTaskError": true, "InstantiationException": true, "ExceptionGroup": true,
	"BaseExceptionGroup": true, "_RemoteTraceback": true, "RemoteTraceback": true, "RemoteError": true, "DatasetGenerationError": true,
	"HydraException": true, "JaxStackTraceBeforeTransformation": true, "TuneError": true, "TrainingFailedError": true, "MisconfigurationException": true}

// Base returns the class of the exception without its module.
func (e *Exception) Base() string { return Base(e.Class) }
