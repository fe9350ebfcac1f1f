package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func stat(pid int, name, state string, parent int, start uint64) string {
	return fmt.Sprintf("%d (%s) %s %d 40 40 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 %d 1000 200\n", pid, name, state, parent, start)
}

func TestParseStat(t *testing.T) {
	for _, name := range []string{"sh", "a) b", ") S 1 (", "(", ")", "", "a\nb", "\xff\x00"} {
		want := Stat{PID: 42, Name: name, State: 'S', Parent: 7, Faults: 10, User: 50, System: 60, Waited: 15, RSS: 200, Threads: 1, Start: 99}
		if got, err := ParseStat([]byte(stat(42, name, "S", 7, 99))); err != nil || got != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	for state, want := range map[string]bool{"R": false, "S": false, "D": false, "T": false, "Z": true, "X": true} {
		if got, err := ParseStat([]byte(stat(42, "sh", state, 7, 99))); err != nil || got.Ended() != want {
			t.Errorf("state %s: %+v, %v", state, got, err)
		}
	}
	for _, text := range []string{"", "42", "42 (sh", "42 sh) S 7", "42 (sh)", "42 (sh) S", "42 (sh) S 7 1 2", "(sh) S 7",
		strings.Replace(stat(42, "sh", "S", 7, 99), " 7 ", " x ", 1), strings.Replace(stat(42, "sh", "S", 7, 99), " 99 ", " -1 ", 1),
		strings.Replace(stat(42, "sh", "S", 7, 99), "42 ", "x ", 1)} {
		if got, err := ParseStat([]byte(text)); err == nil || got != (Stat{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(stat(12, "a) b", "S", 1, 777)))
	f.Add([]byte("12 (sh) Z 1 12"))
	f.Add([]byte("(("))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := ParseStat(data); err == nil && (s.State == 0 || !strings.Contains(string(data), "("+s.Name+")")) {
			t.Errorf("%q: %+v", data, s)
		}
	})
}

func TestThisProcess(t *testing.T) {
	pid := os.Getpid()
	s, err := ReadStat(pid)
	if err != nil || s.PID != pid || s.Parent != os.Getppid() || s.Start == 0 || s.Ended() {
		t.Errorf("%+v, %v", s, err)
	}
	if !slices.Contains(PIDs(), pid) {
		t.Error("PIDs does not have it")
	}
	if got := Args(pid); !slices.Equal(got, os.Args) {
		t.Errorf("arguments %q, want %q", got, os.Args)
	}
	if uid, ok := UID(pid); !ok || uid != os.Geteuid() {
		t.Errorf("user %d, %v", uid, ok)
	}
	if got := Namespace(pid, "pid"); !strings.HasPrefix(got, "pid:[") {
		t.Errorf("namespace %q", got)
	}
	if got := BootID(); len(got) != 36 {
		t.Errorf("boot ID %q", got)
	}
}

func TestChild(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if _, err := os.Stat(Path(os.Getpid(), fmt.Sprintf("task/%d/children", os.Getpid()))); err == nil && !slices.Contains(Children(os.Getpid()), pid) {
		t.Errorf("children %v, want %d among them", Children(os.Getpid()), pid)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadStat(pid); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its end: %+v, %v", s, err)
	}
	if _, ok := UID(pid); ok || Args(pid) != nil || Children(pid) != nil || Namespace(pid, "pid") != "" {
		t.Error("it has ended, and has a user, arguments, an environment, children or a namespace")
	}
}

func TestField(t *testing.T) {
	data := []byte("Name:\tx: y\nThreads:\t3\nVmHWM:\t  12 kB\n")
	for key, want := range map[string]string{"Name": "x: y", "Threads": "3", "VmHWM": "12 kB", "Vm": "", "": ""} {
		if got, ok := Field(data, key); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", key, got, ok)
		}
	}
}
