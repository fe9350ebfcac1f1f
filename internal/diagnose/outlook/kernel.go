package outlook

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// kernelLine matches a line of the kernel's log in the log of a host.
var kernelLine = textmatch.New(`^(?:\d{4}-\d\d-\d\dT\S+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) \S+ kernel: `)

// lost matches the kernel's report that a file server, a device or a link does not answer. One of the groups is its
// name.
var lost = textmatch.New(`server (\S+) not responding|LustreError: .*\boperation \S+ to node (\S+) failed|Lustre: .*\bConnection to (\S+) .*was lost|\breq@.*->(\S+?)@|\b(?:CIFS|SMB)\b.*\bserver (\S+) (?:does not respond|has not responded)|Got async event : port error|\b(\w+): (?i:link (?:is )?down)\b`)

// back matches the kernel's report that something that was lost answers again.
var back = textmatch.New(`(?i)server \S+ OK$|\bConnection restored to\b|\brecover(?:y|ed)? (?:is )?(?:complete|over)|\breconnected\b|\blink (?:is )?up\b|\bport (?:is )?active\b`)

// ofR matches lines that R prints after an error whether or not the program goes on.
var ofR = textmatch.New(`^(?:In addition: |Warning messages?:|Calls: |In .* :|\d+: |\s|$)`)

// OnInR reports whether an R program goes on after an error. text has the lines after the error. If a script ends
// because of the error, R says so there ("Execution halted").
func OnInR(text []string) bool {
	warns := false // true if the line before announces a warning
	on := slices.ContainsFunc(text, func(t string) bool {
		before := warns
		warns = strings.HasSuffix(t, "Warning message:")
		return !before && !ofR.MatchString(t)
	})
	return on && !slices.Contains(text, "Execution halted")
}

// Back reports whether a record of a kernel says that a file server or a link does not answer, and a later record says
// that it answers again.
func Back(record string, later []string) bool {
	m := lost.FindStringSubmatch(record)
	if m == nil {
		return false
	}
	name := strings.Join(m[1:], "")
	return slices.ContainsFunc(later, func(t string) bool { return strings.Contains(t, name) && back.MatchString(t) })
}
