package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// TestScripts runs testdata/script/*.txtar, each in a directory, a home and a
// GANGRUN_HOME of its own. Beside testscript's own commands they have those of
// scriptCommands.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("testdata", "script"),
		Cmds:               scriptCommands,
		Setup:              setUp,
		RequireUniqueNames: true,
	})
}

var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"await":   await,
	"code":    code,
	"ended":   endedWith,
	"json":    checkJSON,
	"journal": checkJournal,
	"rundir":  runDir,
	"signal":  sendSignal,
	"start":   start,
}

// waitLimit bounds every wait of a script: it is only reached by a test that
// fails.
const waitLimit = 3 * time.Minute

// goneLooks is how often what a script has started is looked for at its end before
// it counts as left behind: some 20 s, and more where the machine is slow.
const goneLooks = 2000

// setUp gives a script its environment, and checks in the end that no process
// has been left behind and none met a data race.
func setUp(e *testscript.Env) error {
	e.Setenv("HOME", filepath.Join(e.WorkDir, "user"))
	e.Setenv("GANGRUN_HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+filepath.Join(e.WorkDir, "race"))
	e.Setenv("PYTHON", "/usr/bin/python3")                        // Debian's, as the tests' packages are
	reports, err := filepath.Abs("../../topology/probe/testdata") // what nvidia-smi has said
	if err != nil {
		return err
	}
	e.Setenv("REPORTS", reports)
	jobs := map[string]*background{}
	e.Values[backgroundKey{}] = jobs
	e.Defer(func() {
		var left []string
		for name, b := range jobs {
			if b.running() {
				left = append(left, name+" has not been waited for with ended")
				_ = b.cmd.Process.Kill()
				<-b.done
			}
		}
		left = append(left, processes(e.WorkDir)...)
		races, _ := filepath.Glob(filepath.Join(e.WorkDir, "race.*"))
		for _, path := range races {
			report, _ := os.ReadFile(path)
			left = append(left, string(report))
		}
		if len(left) > 0 {
			e.T().Fatal(strings.Join(left, "\n"))
		}
	})
	return os.Mkdir(filepath.Join(e.WorkDir, "user"), 0o700)
}

// processes names the processes of a script, told by their environment, that
// do not end by themselves, and kills them.
func processes(work string) (left []string) {
	mark := []byte("\x00WORK=" + work + "\x00")
	for looks := 1; ; looks++ {
		var pids []int
		left = nil
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range environs {
			environ, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(append([]byte{0}, environ...), mark) {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			pids = append(pids, pid)
			left = append(left, fmt.Sprintf("process %d has been left behind: %q", pid, command))
		}
		if len(left) == 0 || looks == goneLooks {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return left
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// code runs a program that must end with exactly that code:
//
//	code 64 gangrun run -n 0 -- true
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM [ARGS...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = shellCode(exit.ProcessState)
	} else {
		ts.Check(err)
	}
	if args[0] != strconv.Itoa(got) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func shellCode(p *os.ProcessState) int {
	if status := p.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}

// await runs a program until it succeeds:
//
//	await test -s pid.0
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: await PROGRAM [ARGS...]")
	}
	environ := scriptEnv(ts)
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(25 * time.Millisecond) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environ
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q has not succeeded within %s: %v\n%s", args, waitLimit, err, out)
		}
	}
}

// background is a program that a script has started.
type background struct {
	cmd      *exec.Cmd
	out, err string        // files with its output
	done     chan struct{} // closed when it has ended
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

// start runs a program in the background, with its output in NAME.out and
// NAME.err:
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
		_ = b.cmd.Wait() // its code is in ProcessState
	}()
}

// lookPath finds a program on the script's PATH, which it may have changed.
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

// scriptEnv returns the script's present environment. testscript tells it to
// programs alone.
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

// endedWith waits for a program in the background, which must end with exactly
// that code; what it has printed is then stdout and stderr:
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

// runDir finds the run whose ID holds a text, any run without one; there must
// be one only. The variable gets the run's directory:
//
//	rundir RUN digits
func runDir(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: rundir VARIABLE [TEXT]")
	}
	text := strings.Join(args[1:], "")
	found, err := filepath.Glob(filepath.Join(ts.Getenv("GANGRUN_HOME"), "runs", "*"+text+"*"))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d runs: %q", len(found), found)
	}
	ts.Setenv(args[0], found[0])
}

// checkJSON compares a value in a JSON file, or says that there is one:
//
//	json stdout .attempts.0.cause.category killed
//	json stdout .attempts.@            2
//	json stdout .attempts.-1.exits.*.code '[0,0]'
//	json stdout .run                   ~ '^2.*-digits-'
//	json stdout .run                   > RUN
//	! json stdout .attempts.2
//
// A path goes by names and indices; -1 is the last element of a list, * are
// all of them and @ is their number. A value is compared as text, anything but
// a string in its compact JSON form; after ~ it is a regular expression, and
// after > the name of a variable that gets it.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 4 {
		ts.Fatalf("usage: json FILE PATH [[~|>] VALUE]")
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	if d.More() {
		ts.Fatalf("%s holds more than one JSON value", args[0])
	}
	v, err := walk(v, strings.Split(strings.TrimPrefix(args[1], "."), "."))
	if err != nil {
		if !neg {
			ts.Fatalf("%s%s: %v", args[0], args[1], err)
		}
		return
	}
	got, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		ts.Check(err)
		got = string(data)
	}
	same := true
	switch {
	case len(args) == 3:
		same = got == args[2]
	case len(args) == 4 && args[2] == "~":
		re, err := regexp.Compile(args[3])
		ts.Check(err)
		same = re.MatchString(got)
	case len(args) == 4 && args[2] == ">" && !neg:
		ts.Setenv(args[3], got)
	case len(args) == 4:
		ts.Fatalf("unknown operator %q", args[2])
	}
	if same == neg {
		ts.Fatalf("%s%s is %s", args[0], args[1], got)
	}
}

// walk follows a path into a JSON value.
func walk(v any, path []string) (any, error) {
	if len(path) == 0 || path[0] == "" {
		return v, nil
	}
	name, rest := path[0], path[1:]
	switch v := v.(type) {
	case map[string]any:
		if name == "@" {
			return len(v), nil
		}
		next, ok := v[name]
		if !ok {
			return nil, fmt.Errorf("no %q", name)
		}
		return walk(next, rest)
	case []any:
		switch name {
		case "@":
			return len(v), nil
		case "*":
			all := []any{}
			for _, element := range v {
				one, err := walk(element, rest)
				if err != nil {
					return nil, err
				}
				all = append(all, one)
			}
			return all, nil
		}
		i, err := strconv.Atoi(name)
		if i < 0 {
			i += len(v)
		}
		if err != nil || i < 0 || i >= len(v) {
			return nil, fmt.Errorf("no element %q among %d", name, len(v))
		}
		return walk(v[i], rest)
	}
	return nil, fmt.Errorf("no %q in %v", name, v)
}

// checkJournal checks that a journal of a run that has ended is whole: JSON
// objects, one a line, with a time each, from created to ended. Further
// arguments are kinds of events that must be there, in that order:
//
//	journal $RUN/journal.jsonl attempt started exit
func checkJournal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: journal FILE [KIND...]")
	}
	var kinds []string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var e struct {
			Time *time.Time
			Kind string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time == nil || !strings.HasSuffix(line, "\n") {
			ts.Fatalf("%s: line %d is no event (%v): %q", args[0], len(kinds)+1, err, line)
		}
		kinds = append(kinds, e.Kind)
	}
	if len(kinds) == 0 || kinds[0] != "created" || kinds[len(kinds)-1] != "ended" {
		ts.Fatalf("%s holds %q, which does not go from created to ended", args[0], kinds)
	}
	rest := kinds
	for _, want := range args[1:] {
		i := slices.Index(rest, want)
		if i < 0 {
			ts.Fatalf("%s holds %q, and %q is not where it should be", args[0], kinds, want)
		}
		rest = rest[i+1:]
	}
}
