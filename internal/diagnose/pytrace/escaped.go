package pytrace

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// recordMessage matches the message of a record in JSON, on a line of its own.
var recordMessage = textmatch.New(`^\s*"(?:message|msg|error|exception)": "(.*)",?$`)

// Recorded returns the exception that the message of a log record in JSON names. lines has the lines above the
// traceback of the record, and last is the last exception of that traceback. Recorded returns nil if the message
// names no exception or one of the same class as the last exception of the traceback. The two classes differ if the
// traceback was cut short.
func Recorded(lines []string, last Exception) []Exception {
	for _, t := range slices.Backward(lines) {
		m := recordMessage.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		said := unescape.Replace(m[1])
		if !ErrorLine(said) {
			return nil
		}
		e := Headless([]string{said}, 0)
		e.Bare, e.Linked = false, true
		if e.Base() == last.Base() {
			return nil
		}
		return []Exception{e}
	}
	return nil
}

var unescape = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t")

// fatalLevel matches the level of a message with which a program ends.
var fatalLevel = textmatch.New(`(?i)"(?:fatal|critical|panic)"`)

// AfterEscaped is a number of lines. Escaped reads a traceback that a logger has written in a single line. If more than
// AfterEscaped lines follow that line, its exception did not end the program, unless the message has the highest level.
const AfterEscaped = 3

// Escaped reads a line that has a whole traceback, as a logger writes it in a string of JSON or of Python. found
// is true if the line has one. chain is empty if the program went on, that is, if more than a few lines follow and
// the level of the message is not the highest. after is the number of the lines that follow and are not records of
// errors.
func Escaped(t string, after int) (found bool, chain []Exception) {
	at := strings.Index(t, header)
	if at < 0 || !strings.Contains(t, `\n  File `) {
		return false, nil
	}
	if after > AfterEscaped && !fatalLevel.MatchString(t) {
		return true, nil
	}
	t = t[at:]
	for end := 1; end < len(t); end++ {
		closes := (t[end] == '"' || t[end] == '\'') && t[end-1] != '\\' && (end+1 == len(t) || strings.IndexByte(",}) ]", t[end+1]) >= 0)
		if closes && !strings.Contains(t[end:], `\n`) { // the string ends
			t = t[:end]
			break
		}
	}
	return true, Tracebacks(strings.Split(unescape.Replace(t), "\n"))
}
