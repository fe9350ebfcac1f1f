package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the scripts with gangrun as users get it. Programs with the race detector take four times as long
// to start, so only TestSoakScripts uses them.
func TestScripts(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	scripts(t, func(e *testscript.Env) error {
		e.Setenv("PATH", filepath.Dir(path)+string(filepath.ListSeparator)+e.Getenv("PATH"))
		return setUp(e)
	})
}

// scripts runs testdata/script/*.txtar. Each script has its own directory, home and GANGRUN_HOME. It can use the
// commands of testscript and those of scriptCommands.
func scripts(t *testing.T, setUp func(*testscript.Env) error) {
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

// waitLimit is how long a script waits for anything. Only scripts that fail wait so long.
const waitLimit = 3 * time.Minute

// goneLooks is how often scriptProcesses looks for processes of a script before they count as left behind. All looks
// together take about 20 s, or longer on a slow machine.
const goneLooks = 2000

// setUp sets the environment of a script. At the end of the script, it checks that no process is left and that no
// process has found a data race.
func setUp(e *testscript.Env) error {
	e.Setenv("HOME", filepath.Join(e.WorkDir, "user"))
	e.Setenv("GANGRUN_HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+filepath.Join(e.WorkDir, "race"))
	e.Setenv("PYTHON", "/usr/bin/python3")                        // the packages of the tests are Debian's
	reports, err := filepath.Abs("../../topology/probe/testdata") // recorded output of nvidia-smi
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
		left = append(left, scriptProcesses(e.WorkDir)...)
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

// scriptProcesses kills the processes of a script that do not end by themselves, and returns their names. It knows
// them by their environment.
func scriptProcesses(work string) (left []string) {
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

// code runs a program, which must exit with exactly this code:
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
