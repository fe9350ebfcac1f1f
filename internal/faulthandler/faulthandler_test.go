package faulthandler

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const python = "/usr/bin/python3"

// start runs Python code with the module. It returns when the code has printed "ready". said has the lines
// before that.
func start(t *testing.T, pythonPath, code string) (cmd *exec.Cmd, said []string, dump string) {
	t.Helper()
	dir := t.TempDir()
	dump = filepath.Join(t.TempDir(), "faults.0")
	if err := Install(dir); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(python, "-c", code)
	cmd.Env = append(os.Environ(), Environ(pythonPath, dir, dump)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			return cmd, said, dump
		}
		said = append(said, lines.Text())
	}
	t.Fatal("Python ended before it was ready")
	return nil, nil, ""
}

// TestSignal checks that a Python program that does not know gangrun writes the stacks of its threads, and
// goes on.
func TestSignal(t *testing.T) {
	cmd, said, dump := start(t, "", `
import os, sys, threading, time
first = os.open("/dev/null", os.O_RDONLY)
ready = threading.Barrier(2)
def loader():
    ready.wait()
    time.sleep(1000)
threading.Thread(target=loader, daemon=True).start()
def average():
    ready.wait()
    print(first, [p for p in sys.path if "sitecustomize.py" in (os.listdir(p) if os.path.isdir(p) and p.startswith("/tmp") else [])])
    print("ready", flush=True)
    time.sleep(1000)
average()
`)
	if want := []string{"3 []"}; !reflect.DeepEqual(said, want) {
		t.Errorf("the program sees %q of gangrun, want %q: the first free descriptor, and no directory on its path", said, want)
	}
	for round := range 2 {
		if err := os.Truncate(dump, 0); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(Signal); err != nil {
			t.Fatal(err)
		}
		var threads []Thread
		for end := time.Now().Add(2 * time.Minute); len(threads) < 2 || len(threads[1].Frames) < 2; {
			data, err := os.ReadFile(dump)
			if err != nil {
				t.Fatal(err)
			}
			if threads = Parse(data); time.Now().After(end) {
				t.Fatalf("round %d: got %q", round, data)
			}
		}
		inLoader := func(f job.Frame) bool { return f.Function == "loader" }
		if !slices.ContainsFunc(threads[0].Frames, inLoader) || threads[0].Current {
			t.Errorf("round %d: got %+v of the other thread", round, threads[0])
		}
		line := threads[1].Frames[0].Line // the thread may not have returned from print yet
		want := []job.Frame{{Function: "average", File: "<string>", Line: line}, {Function: "<module>", File: "<string>", Line: 14}}
		if !reflect.DeepEqual(threads[1].Frames, want) || !threads[1].Current || line < 12 || line > 13 {
			t.Errorf("round %d: the main thread is at %+v, want %+v", round, threads[1].Frames, want)
		}
	}
}

// TestChain checks that the user's own sitecustomize also runs, with its own name and file.
func TestChain(t *testing.T) {
	dir := t.TempDir()
	own := "import sys\nsys.mine = (__name__, __file__)\n"
	if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	_, said, _ := start(t, dir, `
import faulthandler, sys, sitecustomize
print(*sys.mine)
print(sitecustomize.__file__)
print(faulthandler.unregister(57))
print("ready", flush=True)
sys.stdin.read()
`)
	file := filepath.Join(dir, "sitecustomize.py")
	if want := []string{"sitecustomize " + file, file, "True"}; !reflect.DeepEqual(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

// TestUnusable checks that a program starts as usual if its stacks cannot be written.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	if err := Install(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", "import faulthandler; print(faulthandler.unregister(57))")
	cmd.Env = append(os.Environ(), Environ("", dir, "/no/such/directory/file")...)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "False\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestParse(t *testing.T) {
	dump := `Thread 0x00007f66167b86c0 [loader 1] (most recent call first):
  File "/data/a b/loader.py", line 88 in next
  File "<frozen runpy>", line 198 in _run_module_as_main
  ...

Thread 0x00007f66167b86c1 (most recent call first):
  <no Python frame>

Current thread 0x00007f6616fb9b80 (most recent call first):
  File "train.py", line ??? in <lambda>
  File "train.py", line 1`
	want := []Thread{
		{ID: 0x7f66167b86c0, Frames: []job.Frame{
			{Function: "next", File: "/data/a b/loader.py", Line: 88}, {Function: "_run_module_as_main", File: "<frozen runpy>", Line: 198}}},
		{ID: 0x7f66167b86c1},
		{ID: 0x7f6616fb9b80, Current: true, Frames: []job.Frame{{Function: "<lambda>", File: "train.py"}}},
	}
	if got := Parse([]byte(dump)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for i := range dump {
		Parse([]byte(strings.Repeat(dump[i:], 2))) // Parse must accept every part of a dump
	}
}

func TestEnviron(t *testing.T) {
	got := Environ("/a:/b", "/dir", "/file")
	if want := []string{"PYTHONPATH=/dir:/a:/b", "GANGRUN_FAULTHANDLER=/file"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Environ("", "/dir", "/file")[0]; got != "PYTHONPATH=/dir" {
		t.Errorf("got %q: an empty entry would be the working directory", got)
	}
}
