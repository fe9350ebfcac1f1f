package leftover

import (
	"fmt"
	"strings"
)

// maxNamed limits how many processes a text names.
const maxNamed = 8

// Names describes processes in words: how many there are, and the programs and gangs of the
// first few.
func Names(all []Process) string {
	var names []string
	for _, p := range all[:min(len(all), maxNamed)] {
		text := fmt.Sprintf("%d (%s", p.PID, p.Name)
		if p.Gang != "" {
			text += " of " + p.Gang
		}
		if p.State == "D" {
			text += ", in an uninterruptible wait for a device or file system"
		}
		names = append(names, text+")")
	}
	if more := len(all) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	noun := "processes"
	if len(all) == 1 {
		noun = "process"
	}
	return fmt.Sprintf("%d %s: %s", len(all), noun, strings.Join(names, ", "))
}

// Killed returns a sentence that reports which processes were killed.
func Killed(killed []Process) string {
	return "killed what was left of gangs whose agents and watchdogs had been killed: " + Names(killed)
}
