package endreport

import "testing"

// TestCoded: the code of a process that a signal has ended is read on a line of its own.
func TestCoded(t *testing.T) {
	for text, want := range map[string]int{
		"exit code 143":                             15,
		"command terminated with exit code 137":     9,
		"  Exit Code:    137":                       9,
		"run.sh: exit status: 143":                  15,
		"exit code 1":                               0,
		"the exit code 143 means that it was ended": 0,
	} {
		got := 0
		if all := Find([]string{text}, make([]bool, 1)); len(all) > 0 {
			got = all[0].Signal
		}
		if got != want {
			t.Errorf("%q: got signal %d, want %d", text, got, want)
		}
	}
}
