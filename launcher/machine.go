package launcher

import (
	"fmt"
	"slices"
	"strings"
)

// TwiceError is that one machine stands in the list of hosts under several names:
// what it has would count as often.
type TwiceError struct{ machines [][]string } // the names of each

// Error says which names are of one machine.
func (e *TwiceError) Error() string {
	var texts []string
	for _, names := range e.machines {
		last := len(names) - 1
		texts = append(texts, fmt.Sprintf("%s and %s are one machine", strings.Join(names[:last], ", "), names[last]))
	}
	return strings.Join(texts, "; ") + ": its cores and GPUs would count more than once"
}

// Hint says what to do.
func (e *TwiceError) Hint() string {
	return fmt.Sprintf("name it once, with as many slots as it is to have: --hosts %[1]s:N, or %[1]s slots=N in a hostfile", e.machines[0][0])
}

// distinct refuses hosts of which several are one machine, unless all of them are
// pretended ones, which are on this one.
func distinct(agents []*remote) error {
	names := map[string][]string{}
	var order []string
	real := false
	for _, a := range agents {
		if a == nil || a.machine == "" {
			continue
		}
		real = real || !a.link.Local || a.link.Own
		if names[a.machine] == nil {
			order = append(order, a.machine)
		}
		names[a.machine] = append(names[a.machine], a.host)
	}
	if !real {
		return nil
	}
	twice := &TwiceError{}
	for _, machine := range slices.DeleteFunc(order, func(m string) bool { return len(names[m]) < 2 }) {
		twice.machines = append(twice.machines, names[machine])
	}
	if len(twice.machines) == 0 {
		return nil
	}
	return twice
}
