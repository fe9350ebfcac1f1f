package affinity_test

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/affinity"
)

func TestParse(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-3,8": 5, "5,1": 2, "1023": 1, "0-1023": 1024} {
		if set, err := affinity.Parse(list); err != nil || set.Count() != want {
			t.Errorf("%q: %d CPUs, %v, want %d", list, set.Count(), err, want)
		}
	}
	for _, list := range []string{"", ",", "1-", "-1", "3-1", "1024", "0-1024", "a", "0x1", " 1", "1,", "99999999999999999999"} {
		if set, err := affinity.Parse(list); err == nil || set.Count() != 0 {
			t.Errorf("%q is taken for %d CPUs", list, set.Count())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0-3,8")
	f.Add("1-")
	f.Fuzz(func(t *testing.T, list string) {
		if set, err := affinity.Parse(list); err == nil && set.Count() == 0 {
			t.Errorf("%q is taken and names no CPU", list)
		}
	})
}

// allowed returns the CPUs that a newly started process may use.
func allowed(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "Cpus_allowed_list:"))
}

func TestBound(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	one := 0
	for !mine.IsSet(one) {
		one++
	}
	all := allowed(t)
	for list, want := range map[string]string{"": all, "1000-1023": all, "rubbish": all, strings.Repeat("0,", one) + string(rune('0'+one)): "0"} {
		if one > 0 && want == "0" {
			continue // this process may not use the first CPU
		}
		got := ""
		affinity.Bound(list, func() { got = allowed(t) })
		if got != want {
			t.Errorf("bound to %q: %q, want %q", list, got, want)
		}
		if after := allowed(t); after != all {
			t.Errorf("after %q: %q, want %q", list, after, all)
		}
	}
}
