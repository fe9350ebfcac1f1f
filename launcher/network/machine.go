package network

import (
	"fmt"
	"slices"
	"strings"
)

// DuplicateError reports that the list of hosts has a machine under several names, so that the cores and GPUs
// of that machine would count more than once.
type DuplicateError struct {
	// machines has, for each such machine, the names under which the list has it.
	machines [][]string
}

// Error lists the names of each such machine.
func (e *DuplicateError) Error() string {
	var texts []string
	for _, names := range e.machines {
		last := len(names) - 1
		texts = append(texts, fmt.Sprintf("%s and %s are one machine", strings.Join(names[:last], ", "), names[last]))
	}
	return strings.Join(texts, "; ") + ": its cores and GPUs would count more than once"
}

// Hint says what the user should do.
func (e *DuplicateError) Hint() string {
	return fmt.Sprintf("name it once, with as many slots as it is to have: --hosts %[1]s:N, or %[1]s slots=N in a hostfile", e.machines[0][0])
}

// Distinct returns a *DuplicateError if several hosts are the same machine. It always returns
// nil if all hosts are simulated.
func Distinct(hosts []Host) error {
	names := map[string][]string{}
	var order []string
	real := false
	for _, h := range hosts {
		if h.Machine == "" {
			continue
		}
		real = real || !h.Local || h.Own
		if names[h.Machine] == nil {
			order = append(order, h.Machine)
		}
		names[h.Machine] = append(names[h.Machine], h.Name)
	}
	if !real {
		return nil
	}
	duplicate := &DuplicateError{}
	for _, machine := range slices.DeleteFunc(order, func(m string) bool { return len(names[m]) < 2 }) {
		duplicate.machines = append(duplicate.machines, names[machine])
	}
	if len(duplicate.machines) == 0 {
		return nil
	}
	return duplicate
}
