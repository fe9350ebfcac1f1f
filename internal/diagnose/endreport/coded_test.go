package endreport

import (
	"strings"
	"testing"
)

// TestCoded checks that an exit code which stands for a signal is read only from a line of its own.
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

// TestOfRank checks the forms in which launchers name a rank and its signal. A PID is not the number of a rank.
func TestOfRank(t *testing.T) {
	for text, want := range map[string][2]int{
		"rank 6 (g2:2) exited: killed by signal 9":            {6, 9},
		"launcher: task 1 (host b7) died of signal 9, ending": {1, 9},
		"mgr: rank 5 on node c3 exited on signal 11; ending":  {5, 11},
		"[sup] rank 0 gone: signal 9 (SIGKILL)":               {0, 9},
		"starter: rank 2 got SIGKILL":                         {2, 9},
		"spawn: child 2 (pid 811) died: Segmentation fault":   {2, 11},
		"child 7110 was killed by signal 6":                   {-1, 0},
		"rank 2 got SIGTERM, writing its state":               {-1, 0},
	} {
		got := [2]int{-1, 0}
		if all := Find([]string{text}, make([]bool, 1)); len(all) > 0 {
			got = [2]int{all[0].Rank, all[0].Signal}
		}
		if got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestByNumber checks lines that give a signal only by its number. A line above may name the rank.
func TestByNumber(t *testing.T) {
	for text, want := range map[string][2]int{
		"sup: rank 7 has terminated without calling MPI_Finalize()\n     ending job\nsup: Received signal 11": {7, 11},
		"runner: task 3 got signal 9":                     {3, 9},
		"ERROR: PE 12 caught signal 7, ending":            {12, 7},
		"Received signal 15":                              {-1, 0},
		"rank 3 received signal 10 (reload)":              {-1, 0},
		"worker pool: caught signal 11 handler installed": {-1, 0},
	} {
		lines := strings.Split(text, "\n")
		got := [2]int{-1, 0}
		if all := Find(lines, make([]bool, len(lines))); len(all) > 0 {
			got = [2]int{all[0].Rank, all[0].Signal}
		}
		if got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestOldHydra checks that an exit code of an old hydra, which does not name signals, is read as a signal.
func TestOldHydra(t *testing.T) {
	for code, want := range map[string]int{"9": 9, "11": 11, "139": 11, "137": 9, "134": 6, "1": 0, "2": 0, "143": 0} {
		lines := []string{"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "=   EXIT CODE: " + code, "=   CLEANING UP REMAINING PROCESSES"}
		all := Find(lines, make([]bool, len(lines)))
		if len(all) != 1 || all[0].Signal != want {
			t.Errorf("code %s: got %+v, want signal %d", code, all, want)
		}
	}
}
