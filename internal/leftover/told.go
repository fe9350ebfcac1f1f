package leftover

import (
	"fmt"
	"strings"
)

// mostNamed is how many processes a text names.
const mostNamed = 8

// Names names processes: how many there are, of which programs and gangs.
func Names(all []Process) string {
	var names []string
	for _, p := range all[:min(len(all), mostNamed)] {
		text := fmt.Sprintf("%d (%s", p.PID, p.Name)
		if p.Gang != "" {
			text += " of " + p.Gang
		}
		if p.State == "D" {
			text += ", in an uninterruptible wait for a device or file system"
		}
		names = append(names, text+")")
	}
	if more := len(all) - mostNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	noun := "processes"
	if len(all) == 1 {
		noun = "process"
	}
	return fmt.Sprintf("%d %s: %s", len(all), noun, strings.Join(names, ", "))
}

// Told says which processes were killed, and why.
func Told(killed []Process) string {
	return "killed what was left of gangs whose agents and watchdogs had been killed: " + Names(killed)
}
