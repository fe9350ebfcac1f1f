package nativetrace

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	// charmHead matches the first line that the runtime of Charm++ prints before it ends the program.
	charmHead = textmatch.New(`^\s*-+ Processor (\d+) Exiting: (.*?) -+\W*$`)
	// charmCrash and charmSignal match the reasons that are signals.
	charmCrash  = textmatch.New(`(?i)^(?:segmentation (?:fault|violation)|bus error)`)
	charmSignal = textmatch.New(`(?i)^(?:terminated|interrupt|hangup|killed)\b`)
	// charmFrame matches a line of the stack trace below it.
	charmFrame = textmatch.New(`^\s*\[\d+\] Stack Traceback|^\s*\[\d+:\d+\] `)
)

// charm reads what the runtime of Charm++ prints before it ends the program.
func charm(text []string, i int) *Death {
	m := charmHead.FindStringSubmatch(text[i])
	if m == nil {
		return nil
	}
	g := &Death{Said: true, Title: "Processor " + m[1] + " Exiting: " + m[2], Text: m[2], From: i, At: i}
	for j := i + 1; j < len(text) && j <= i+3; j++ {
		if why, ok := strings.CutPrefix(strings.TrimSpace(text[j]), "Reason: "); ok {
			g.Title, g.Text, g.At = "Processor "+m[1]+" Exiting: "+why, why, j
			break
		}
	}
	switch {
	case charmCrash.MatchString(g.Text):
		g.Class, g.Said = "Charm++ crash", false
	case charmSignal.MatchString(g.Text):
		g.Class, g.Said = "Charm++ signal", false
	}
	g.To = g.At + 1
	for g.To < len(text) && charmFrame.MatchString(text[g.To]) {
		g.To++
	}
	return g
}
