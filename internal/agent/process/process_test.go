package process

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/procfs"
)

// stat returns a line of /proc/PID/stat.
func stat(pid int, name, state string, parent int, start uint64) string {
	return fmt.Sprintf("%d (%s) %s %d 100 100 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0 18446744073709551615 0 0 0\n", pid, name, state, parent, start)
}

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Process
	}{
		{"plain", stat(42, "python3", "S", 7, 123456), Process{PID: 42, Parent: 7, Start: 123456}},
		{"spaces", stat(42, "tmux: server", "R", 1, 1), Process{PID: 42, Parent: 1, Start: 1}},
		{"parentheses", stat(42, "(sd-pam)", "S", 1, 9), Process{PID: 42, Parent: 1, Start: 9}},
		{"a whole entry as its name", stat(42, ") Z 1 1 1 (x", "D", 8, 5), Process{PID: 42, Parent: 8, Start: 5}},
		{"a line feed", stat(42, "a\nb) S", "T", 8, 5), Process{PID: 42, Parent: 8, Start: 5}},
		{"no name", stat(42, "", "S", 8, 5), Process{PID: 42, Parent: 8, Start: 5}},
		{"zombie", stat(42, "x", "Z", 8, 5), Process{PID: 42, Parent: 8, Start: 5, Zombie: true}},
		{"dead", stat(42, "x", "X", 8, 5), Process{PID: 42, Parent: 8, Start: 5, Zombie: true}},
		{"largest start", stat(42, "x", "S", 0, 1<<64-1), Process{PID: 42, Parent: 0, Start: 1<<64 - 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := parse([]byte(c.text)); !ok || got != c.want {
				t.Errorf("%q: got %+v, %t; want %+v", c.text, got, ok, c.want)
			}
		})
	}
	whole := stat(42, "x", "S", 8, 5)
	for _, text := range []string{
		"", "42", "42 (x)", "42 (x) S 8", ") 42 (x S", strings.Replace(whole, "42", "x", 1), strings.Replace(whole, " 8 ", " y ", 1),
		strings.Replace(whole, " 5 ", " -5 ", 1), whole[:strings.Index(whole, " 5 ")],
	} {
		if got, ok := parse([]byte(text)); ok {
			t.Errorf("%q was read as %+v, want nothing", text, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(stat(42, "python3", "S", 7, 123456)), "name")
	f.Add([]byte(stat(42, ") Z 1 1 1 (x", "D", 8, 5)), ") R 2")
	f.Add([]byte("42 (x)"), "((")
	f.Add([]byte(" )"), "\x00")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if got, ok := parse(data); ok && !strings.HasPrefix(strings.TrimLeft(string(data), "+-0"), strings.TrimLeft(fmt.Sprint(got.PID), "-0")) {
			t.Fatalf("%q was read as %+v", data, got)
		}
		want := Process{PID: 42, Parent: 7, Start: 99}
		if got, ok := parse([]byte(stat(42, name, "S", 7, 99))); !ok || got != want {
			t.Fatalf("a process named %q was read as %+v, %t", name, got, ok)
		}
	})
}

func TestReadProcess(t *testing.T) {
	self, ok := Read(os.Getpid())
	if !ok || self.PID != os.Getpid() || self.Parent != os.Getppid() || self.Start == 0 || self.Zombie {
		t.Errorf("this process is %+v, %t", self, ok)
	}
	if p, ok := Read(-1); ok {
		t.Errorf("process -1 is %+v", p)
	}
}

// parse parses a line of /proc/PID/stat.
func parse(data []byte) (Process, bool) {
	s, err := procfs.ParseStat(data)
	return of(s), err == nil
}
