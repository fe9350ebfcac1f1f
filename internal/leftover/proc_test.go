package leftover

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/watchdog"
)

func TestMain(m *testing.M) {
	if test := os.Getenv(aloneEnv); test != "" && len(os.Args) == 4 && os.Args[1] == "agent" {
		os.Exit(inNamespace(test))
	}
	goleak.VerifyTestMain(m)
}

// orphan starts a process whose parent has ended. If gang is not empty, the process has the tag of the gang. The words
// of before are put before the command of the process.
func orphan(t *testing.T, gang string, before ...string) (pid int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	script := `(setsid "$@" sh -c 'trap "" TERM HUP; echo $$ > "$0".new; mv "$0".new "$0"; while :; do sleep 60; done' "$0" </dev/null >/dev/null 2>&1 &)`
	cmd := exec.Command("sh", append([]string{"-c", script, file}, before...)...)
	if gang != "" {
		run, _, _ := strings.Cut(gang, "/")
		cmd.Env = append(os.Environ(), "GANGRUN_RUN="+run)
		cmd.Args = append([]string{"prlimit", fmt.Sprintf("--locks=%d:", TagOf(gang)), "sh"}, cmd.Args[1:]...)
		var err error
		if cmd.Path, err = exec.LookPath("prlimit"); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if data, err := os.ReadFile(file); err == nil {
			if pid, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
			return pid
		}
		if time.Now().After(deadline) {
			t.Fatal("the process has not started")
		}
	}
}

func alive(pid int) bool {
	p, ok := stat(strconv.Itoa(pid))
	return ok && !p.Ended()
}

// aloneEnv is set in a test that runs in a PID namespace of its own.
const aloneEnv = "GANGRUN_TEST_ALONE"

// alone runs the test again in a PID namespace of its own, below a process that counts as an agent. Otherwise agents
// of other tests could end its processes first. It returns true if the test already runs there.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnv) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "agent", "h1", watchdog.Worker)
	cmd.Env = append(os.Environ(), aloneEnv+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// inNamespace runs a test in a new PID namespace and returns the exit code. A shell is process 1 there, so that it is
// the parent of orphans.
func inNamespace(test string) int {
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", `"$0" "$@"; exit $?`,
		os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	return 0
}

// TestEnd checks that End ends the processes that have the tag of a gang and no agent above them, even if they have
// changed their environment. It must not end other processes.
func TestEnd(t *testing.T) {
	if !alone(t) {
		return
	}
	gang := "test-" + strconv.Itoa(os.Getpid())
	left, cleared := orphan(t, gang+"/1"), orphan(t, gang+"/1", "env", "-i", "PATH="+os.Getenv("PATH"))
	t.Setenv("GANGRUN_RUN", gang) // a rank may have passed the variable on
	other := orphan(t, "")
	killed, stay := End(context.Background(), os.Getpid(), "", time.Minute)
	for pid, name := range map[int]string{left: gang + "/1", cleared: ""} {
		if i := slices.IndexFunc(killed, func(p Process) bool { return p.PID == pid }); i < 0 || killed[i].Gang != name || killed[i].Name != "sh" {
			t.Errorf("killed %+v, want process %d of %q", killed, pid, name)
		}
	}
	if len(stay) > 0 {
		t.Errorf("%+v stay", stay)
	}
	if alive(left) || alive(cleared) || !alive(other) {
		t.Errorf("alive: left %t, cleared %t, other %t; want only the last", alive(left), alive(cleared), alive(other))
	}
}

// TestEndLimit checks that End reports processes that do not end, and waits for them no longer than the limit.
func TestEndLimit(t *testing.T) {
	if !alone(t) {
		return
	}
	gang := "stay-" + strconv.Itoa(os.Getpid())
	pid := orphan(t, gang+"/1")
	_, left := End(context.Background(), os.Getpid(), "", 0) // End has no time to kill it
	if !slices.ContainsFunc(left, func(p Process) bool { return p.PID == pid && p.Gang == gang+"/1" }) {
		t.Errorf("left are %+v, want process %d", left, pid)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, left := End(ctx, os.Getpid(), "", time.Minute); !slices.ContainsFunc(left, func(p Process) bool { return p.PID == pid }) {
		t.Errorf("left are %+v, want process %d", left, pid)
	}
}

func TestIsAgent(t *testing.T) {
	for line, want := range map[string]bool{
		"gang-watchdog gangrun agent h1":       true,
		"gangrun /opt/gangrun agent h1 worker": true,
		"renamed renamed agent h1 watchdog":    true,
		"gangrun gangrun run -n 4 agent":       false,
		"gangrun gangrun agent":                false,
		"python3 python3 agent 3008":           false,
		"rl ./rl agent cfg.yaml":               false,
		"consul consul agent -dev -node x":     false,
		"sleep ":                               false,
	} {
		name, line, _ := strings.Cut(line, " ")
		if got := isAgent(name, []byte(strings.ReplaceAll(line, " ", "\x00")+"\x00")); got != want {
			t.Errorf("%q: got %t", line, got)
		}
	}
}

// TestSet checks that Set tags this process and the processes that it starts after that.
func TestSet(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := Set("run/7"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for _, pid := range []int{os.Getpid(), cmd.Process.Pid} {
		if got := tagOf(pid); got != TagOf("run/7") {
			t.Errorf("process %d has tag %#x", pid, uint64(got))
		}
		if got := Tag(softLocks(readAll(strconv.Itoa(pid), "limits"))); got != TagOf("run/7") {
			t.Errorf("by /proc, process %d has tag %#x", pid, uint64(got))
		}
	}
}

func FuzzSoftLocks(f *testing.F) {
	f.Add([]byte("Max file size             unlimited            unlimited            bytes     \nMax file locks            42                   unlimited            locks     \n"))
	f.Add([]byte("Max file locks            unlimited            unlimited            locks     \n"))
	f.Add([]byte("Max file locks"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := softLocks(data); n > 0 && !strings.Contains(string(data), "Max file locks") {
			t.Errorf("%q: %d", data, n)
		}
	})
}

func FuzzGangIn(f *testing.F) {
	f.Add([]byte("A=b\x00GANGRUN_RUN=run\x00"), "run")
	f.Add([]byte("GANGRUN_RUN="), "")
	f.Fuzz(func(t *testing.T, environ []byte, run string) {
		if gang := gangIn(environ, TagOf(run+"/2")); gang != "" && !strings.Contains(string(environ), "GANGRUN_RUN="+strings.TrimSuffix(gang, "/2")) {
			t.Errorf("%q: %q", environ, gang)
		}
	})
}
