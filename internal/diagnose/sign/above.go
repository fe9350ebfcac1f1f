package sign

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Banner reports whether a sign is what a launcher says of its own end, between two lines that separate it from the
// output of the ranks. Ranks may print more while the launcher ends them.
func (g *Sign) Banner(text []string) bool {
	c := g.Rule.Category
	return g.Plain && g.From > 0 && message.Separator(text[g.From-1]) && (c == job.LaunchError || c == job.MPIRuntime || c == job.HostLost)
}

// Caught reports whether the program has logged an exception: the line above it is the record of a log.
func (g *Sign) Caught(text []string) bool {
	at := g.Above(text)
	return !g.Plain && g.Report == nil && at >= 0 && outlook.Records(text[at])
}

// Above returns the line above an exception, or -1. It skips the lines with which Python begins the exception of
// another process: """ and "..._RemoteTraceback:".
func (g *Sign) Above(text []string) int {
	at := g.From - 1
	for at >= 0 && (text[at] == `"""` || strings.HasSuffix(strings.TrimRight(text[at], " :"), "_RemoteTraceback")) {
		at--
	}
	return at
}

// OfChild reports whether an exception has ended a child process of Python's multiprocessing. The line above the
// exception then names the child process, as in "Process SpawnProcess-1:".
func (g *Sign) OfChild(text []string) bool {
	return g.From > 0 && strings.HasPrefix(text[g.From-1], "Process ") && strings.HasSuffix(text[g.From-1], ":")
}

// ofScript matches what a shell says about a command of a script.
var ofScript = textmatch.New(`^\S+: line \d+: `)

// OfScript reports whether the title is a shell's message about a command of a script. By default, a shell then goes
// on with the next command.
func (g *Sign) OfScript() bool { return ofScript.MatchString(g.Title) }
