package diagnose

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// exception is one traceback, or the message of one.
type exception struct {
	class   string // with its module
	message string // first line
	text    string // class and whole message
	frames  []frame
	from    int // its first line
	at      int // the line of its class
	to      int
	linked  bool // belongs to the exception before it
	ignored bool // Python itself says that it does not matter
	bare    bool // without a traceback
	loading bool // the lines above it say that a checkpoint is loaded
}

type frame struct {
	file, function, source string
	line                   int
}

const header = "Traceback (most recent call last):"

var (
	frameLine  = textmatch.New(`^\s*File "([^"]+)", line (\d+)(?:, in (.*))?$`)
	classLine  = textmatch.New(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:\((\w+)\))?(?::(?: (.*))?)?$`)
	errorClass = textmatch.New(`^(?:[A-Za-z_]\w*\.)*\w*[A-Za-z]\w*(?:Error|Exception|Interrupt|Group)(?:\(\w+\))?(?::|$)`)
	groupLine  = textmatch.New(`^\s*(?:\| ?|\+ |\+-)`)
	libraries  = textmatch.New(`/(?:site|dist)-packages/|/lib/python\d|^<frozen |/multiprocessing/|^<__array_function__|\.pyx$`)
	// more is a line at the margin that still belongs to the message above it.
	more = textmatch.New(`^(?:CUDA kernel errors|For debugging consider|Compile with|nccl\w+:|Last error|Original exception| Original exception|Exception raised from|Device-side assertion|Search for|Did you mean|Hint:|Detected at|\[\./?gloo|\[\.\./)`)
)

// exceptions finds the uncaught Python exceptions of a text: one sign for
// each chain. Lines that belong to any are marked as covered.
func exceptions(text []string, covered []bool, book *rules.Book) []*sign {
	all := tracebacks(text)
	var signs []*sign
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].linked {
			j++
		}
		chain := all[i:j]
		for k := chain[0].from; k < chain[len(chain)-1].to; k++ {
			covered[k] = true
		}
		if !chain[0].ignored {
			signs = append(signs, judge(chain, book))
		}
		i = j
	}
	return signs
}

func base(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

func (e *exception) sign() *sign {
	g := &sign{class: base(e.class), text: e.text, from: e.from, at: e.at, to: e.to, weak: e.bare}
	if g.class == "error" { // zlib.error, struct.error
		g.class = e.class
	}
	g.title = g.class
	if e.message != "" {
		g.title += ": " + e.message
	}
	var context []string
	for _, f := range e.frames {
		context = append(context, f.function+": "+f.source)
	}
	g.context = strings.Join(context, "\n")
	g.where = e.where()
	if e.bare {
		g.discount = 0.2
	}
	return g
}

// where names the innermost frame in the job's own code or, if there is none, the innermost frame.
func (e *exception) where() string {
	if len(e.frames) == 0 {
		return ""
	}
	f := e.frames[len(e.frames)-1]
	for i := len(e.frames) - 1; i >= 0; i-- {
		if !libraries.MatchString(e.frames[i].file) {
			f = e.frames[i]
			break
		}
	}
	where := fmt.Sprintf("%s line %d", path.Base(f.file), f.line)
	if f.function != "" && f.function != "<module>" {
		where += " in " + f.function
	}
	return where
}

// tracebacks finds every exception of a text in order.
func tracebacks(text []string) []exception {
	var all []exception
	end := 0 // line after the last exception
	note := func(e exception) {
		e.linked = len(all) > 0 && !e.bare && linked(text, end, e.from)
		all = append(all, e)
		end = e.to
	}
	for i := 0; i < len(text); {
		switch t := text[i]; {
		case strings.HasSuffix(t, header) && strings.Contains(t, "+ Exception Group"):
			group := grouped(text, i)
			for _, e := range group {
				note(e)
				all[len(all)-1].linked = all[len(all)-1].linked || e.from > i
			}
			if len(group) == 0 {
				i++
				continue
			}
			i = end
		case strings.HasSuffix(t, header):
			e, next, ok := traced(text, i)
			if ok {
				e.ignored = i > 0 && harmless(text[i-1])
				e.loading = slices.ContainsFunc(text[max(0, i-loadingLines):i], loadsCheckpoint.MatchString)
				note(e)
			}
			i = next
		case errorLine(t):
			e := headless(text, i)
			note(e)
			i = e.to
		default:
			i++
		}
	}
	return all
}

// errorLine reports whether a line that is not indented looks like the message of an exception, even
// without a traceback above it.
func errorLine(t string) bool {
	if len(t) < 6 || t[0] == ' ' || t[0] >= 'a' && t[0] <= 'z' && !strings.Contains(t, ".") || strings.IndexByte(t, ' ') == 0 {
		return false
	}
	word, _, _ := strings.Cut(t, " ")
	return (strings.Contains(word, "Error") || strings.Contains(word, "Exception") || strings.Contains(word, "Interrupt")) && errorClass.MatchString(t)
}

// loadingLines is how many lines above a traceback may say that a checkpoint is loaded.
const loadingLines = 3

var loadsCheckpoint = textmatch.New(`(?i)\b(?:load\w*|restor\w*|resum\w*|restart\w*|continu\w*)\b.{0,40}(?:checkpoint|ckpt|\bstate\b|snapshot|\brestart|weights|\.pth?\b|\.npz|\.h5|from)`)

func harmless(before string) bool {
	return strings.HasPrefix(before, "Exception ignored in") || strings.HasPrefix(before, "--- Logging error") || strings.HasPrefix(before, "Error in atexit") ||
		strings.HasPrefix(before, "Error in sys.excepthook")
}

// traced reads the traceback whose header is line i. Lines of other processes may be among its own.
// The index returned is the line at which to go on.
func traced(text []string, i int) (exception, int, bool) {
	e := exception{from: i}
	foreign := 0 // lines of other processes
	for j := i + 1; j < len(text); j++ {
		t := text[j]
		switch {
		case t == "" || t[0] == ' ' || t[0] == '\t':
			e.indented(t)
		case strings.HasSuffix(t, header):
			return e, j, false
		case e.named(t):
			e.at = j
			e.rest(text, j)
			e.original(text)
			return e, e.to, true
		default:
			if foreign++; foreign > 30 {
				return e, i + 1, false
			}
		}
	}
	return e, i + 1, false
}

// indented reads a line of a traceback's body: a frame, its source, its marks.
func (e *exception) indented(t string) {
	if m := frameLine.FindStringSubmatch(t); m != nil {
		e.frames = append(e.frames, frame{file: m[1], line: atoi(m[2]), function: m[3]})
		return
	}
	if n := len(e.frames); n > 0 && e.frames[n-1].source == "" {
		e.frames[n-1].source = strings.TrimSpace(t)
	}
}

// named reads "module.Class: message" and reports whether the line is that.
func (e *exception) named(t string) bool {
	m := classLine.FindStringSubmatch(t)
	if m == nil {
		return false
	}
	last := base(m[1])
	if last == m[1] && (last[0] >= 'a' && last[0] <= 'z' || strings.ToUpper(last) == last && last != "KeyboardInterrupt") {
		return false // "step: 3", "INFO: hello"
	}
	e.class, e.message, e.text = m[1], m[3], t
	return true
}

// rest reads the further lines of a message.
func (e *exception) rest(text []string, at int) {
	e.to = at + 1
	if codeOnly.MatchString(e.message) {
		e.decoded(text, at)
		return
	}
	for j := at + 1; j < len(text) && j <= at+12; j++ {
		t := text[j]
		switch {
		case t == "":
			if e.message != "" || j > at+1 {
				return
			}
			continue
		case strings.HasSuffix(t, header) || frameLine.MatchString(t):
			return
		case t[0] == ' ' || t[0] == '\t' || more.MatchString(t) || strings.HasPrefix(text[j-1], "Last error:") || j == at+1 && e.message == "" && opens(text[at], t):
			if e.message == "" || strings.HasSuffix(e.message, ":") {
				e.message = strings.TrimSpace(e.message + " " + strings.TrimSpace(t))
			}
			e.text += "\n" + t
			e.to = j + 1
		default:
			return
		}
	}
}

// originalError begins the line in which NumPy, and packages like it, give the reason of a failed
// import, after much advice.
var originalError = textmatch.New(`^(?:The )?[Oo]riginal error was: *(.*)`)

// adviceLines is how many lines of advice may come before that line.
const adviceLines = 60

// original reads the reason of an ImportError, which follows the advice at the beginning of its
// message.
func (e *exception) original(text []string) {
	if base(e.class) != "ImportError" {
		return
	}
	for j := e.to; j < len(text) && j < e.at+adviceLines && !strings.HasSuffix(text[j], header); j++ {
		if m := originalError.FindStringSubmatch(text[j]); m != nil && m[1] != "" {
			e.message, e.text, e.to = m[1], e.class+": "+m[1], j+1
			return
		}
	}
}

// opens reports whether line t is the beginning of the message that the line
// of an exception's class leaves open.
func opens(class, t string) bool {
	return strings.HasSuffix(strings.TrimRight(class, " "), ":") && !strings.HasPrefix(t, "--") && !strings.HasPrefix(t, "==") && !strings.HasPrefix(t, `"""`)
}

// headless reads an exception without the header of a traceback: a syntax
// error, a boxed traceback, a message that the program printed itself.
func headless(text []string, i int) exception {
	e := exception{from: i, at: i, bare: true}
	e.named(text[i])
	e.rest(text, i)
	e.original(text)
	for j := i - 1; j >= 0 && j >= i-60; j-- {
		t := text[j]
		if strings.HasPrefix(t, "╰") || strings.HasPrefix(t, "│") || strings.HasPrefix(t, "╭") {
			e.from, e.bare = j, false
			if strings.HasPrefix(t, "╭") {
				break
			}
			continue
		}
		if t == "" || t[0] != ' ' {
			break
		}
		if frameLine.MatchString(t) {
			e.from, e.bare = j, false
		}
	}
	for _, t := range text[e.from:i] {
		e.indented(t)
	}
	return e
}
