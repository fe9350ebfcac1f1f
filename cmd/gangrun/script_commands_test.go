package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// background is a program that a script has started.
type background struct {
	cmd      *exec.Cmd
	out, err string        // paths of the files with its output
	done     chan struct{} // is closed when it has ended
}

type backgroundKey struct{}

func (b *background) running() bool {
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

func backgroundOf(ts *testscript.TestScript, name string) *background {
	b := ts.Value(backgroundKey{}).(map[string]*background)[name]
	if b == nil {
		ts.Fatalf("no program has been started as %q", name)
	}
	return b
}

// start runs a program in the background. Its output goes to NAME.out and NAME.err:
//
//	start one gangrun run -n 2 -- sleep 600
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME PROGRAM [ARGS...]")
	}
	name := args[0]
	jobs := ts.Value(backgroundKey{}).(map[string]*background)
	if jobs[name] != nil {
		ts.Fatalf("%s has been started already", name)
	}
	b := &background{out: ts.MkAbs(name + ".out"), err: ts.MkAbs(name + ".err"), done: make(chan struct{})}
	environ := scriptEnv(ts)
	b.cmd = exec.Command(lookPath(ts, args[1]), args[2:]...)
	b.cmd.Dir, b.cmd.Env = ts.MkAbs("."), environ
	out, err := os.Create(b.out)
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(b.err)
	ts.Check(err)
	defer errs.Close()
	b.cmd.Stdout, b.cmd.Stderr = out, errs
	ts.Check(b.cmd.Start())
	jobs[name] = b
	go func() {
		defer close(b.done)
		_ = b.cmd.Wait() // the exit code is in ProcessState
	}()
}

// lookPath finds a program in the PATH of the script, which the script may have changed.
func lookPath(ts *testscript.TestScript, name string) string {
	if strings.Contains(name, "/") {
		return ts.MkAbs(name)
	}
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	ts.Fatalf("%q is not on PATH", name)
	return ""
}

// scriptEnv returns the current environment of the script. testscript gives this environment only to programs.
func scriptEnv(ts *testscript.TestScript) []string {
	ts.Check(ts.Exec("sh", "-c", `env -0 >"$WORK/.env"`))
	return strings.Split(strings.TrimSuffix(ts.ReadFile(filepath.Join(ts.Getenv("WORK"), ".env")), "\x00"), "\x00")
}

// sendSignal sends a signal to a program in the background:
//
//	signal one SIGTERM
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || unix.SignalNum(args[1]) == 0 {
		ts.Fatalf("usage: signal NAME SIGNAL")
	}
	ts.Check(backgroundOf(ts, args[0]).cmd.Process.Signal(unix.SignalNum(args[1])))
}

// endedWith waits for the end of a program in the background. The program must exit with exactly this code. Its output
// becomes stdout and stderr of the script:
//
//	ended one 143
func endedWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended NAME CODE")
	}
	b := backgroundOf(ts, args[0])
	select {
	case <-b.done:
	case <-time.After(waitLimit):
		ts.Fatalf("%s has not ended within %s\n%s", args[0], waitLimit, ts.ReadFile(b.err))
	}
	fmt.Fprint(ts.Stdout(), ts.ReadFile(b.out))
	fmt.Fprint(ts.Stderr(), ts.ReadFile(b.err))
	if got := strconv.Itoa(shellCode(b.cmd.ProcessState)); got != args[1] {
		ts.Fatalf("%s ended with code %s, want %s", args[0], got, args[1])
	}
}
