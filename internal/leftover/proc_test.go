package leftover

import (
	"context"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// orphan starts a process whose parent has ended, with an environment.
func orphan(t *testing.T, env ...string) (pid int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command("sh", "-c", `(setsid sh -c 'trap "" TERM HUP; echo $$ > "$0".new; mv "$0".new "$0"; while :; do sleep 60; done' "$0" </dev/null >/dev/null 2>&1 &)`, file)
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
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
	p, ok := parseStat(readAll(strconv.Itoa(pid), "stat"))
	return ok && !p.ended()
}

// aloneEnv tells a test that it runs in a PID namespace of its own.
const aloneEnv = "GANGRUN_TEST_ALONE"

// alone runs the test once more in a PID namespace of its own, where no agent of another
// test ends what is left first, and reports whether it is there already.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnv) != "" {
		return true
	}
	// A shell is process 1, to which orphans are given.
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", `"$0" "$@"; exit $?`,
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), aloneEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// End ends processes that carry a mark of a gang and have lost their parent, with what is
// below them, and no others.
func TestEnd(t *testing.T) {
	if !alone(t) {
		return
	}
	gang := "test-" + strconv.Itoa(os.Getpid())
	left, other := orphan(t, Mark(gang+"/1")), orphan(t)
	elsewhere := orphan(t, Env+"="+gang+"/1:0123456789abcdef") // the mark of an agent in another control group
	killed, stay := End(context.Background(), os.Getpid(), "", time.Minute)
	if i := slices.IndexFunc(killed, func(p Process) bool { return p.PID == left }); i < 0 || killed[i].Gang != gang+"/1" || killed[i].Name != "sh" {
		t.Errorf("killed %+v, want process %d of %s", killed, left, gang)
	}
	if len(stay) > 0 {
		t.Errorf("%+v stay", stay)
	}
	if alive(left) || !alive(other) || !alive(elsewhere) {
		t.Errorf("alive: left %t, unmarked %t, elsewhere %t; want only the latter two", alive(left), alive(other), alive(elsewhere))
	}
}

// What the kernel does not let go is told, and waited for no longer than was said.
func TestEndLimit(t *testing.T) {
	if !alone(t) {
		return
	}
	gang := "stay-" + strconv.Itoa(os.Getpid())
	pid := orphan(t, Mark(gang+"/1"))
	_, left := End(context.Background(), os.Getpid(), "", 0) // no time to kill it
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
		"gangrun agent h1":             true,
		"/opt/gangrun agent h1 worker": true,
		"gangrun agent h1 watchdog":    true,
		"gangrun run -n 4 agent":       false,
		"gangrun agent":                false,
		"consul agent -dev -node x":    false,
		"":                             false,
	} {
		if got := isAgent([]byte(strings.ReplaceAll(line, " ", "\x00") + "\x00")); got != want {
			t.Errorf("%q: got %t", line, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 1 2"))
	f.Add([]byte("12 (sh) Z 1 12"))
	f.Add([]byte("(("))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, ok := parseStat(data); ok && (p.State == "" || !strings.Contains(string(data), "("+p.Name+")")) {
			t.Errorf("%q: %+v", data, p)
		}
	})
}

func FuzzMarked(f *testing.F) {
	f.Add([]byte("A=b\x00" + Env + "=run/1:abc\x00"))
	f.Add([]byte(Env + "=\x00"))
	f.Add([]byte(Env + "=:"))
	f.Fuzz(func(t *testing.T, environ []byte) {
		if gang, place := marked(environ); gang+place != "" && !strings.Contains(string(environ), Env+"="+gang+":"+place) {
			t.Errorf("%q: %q, %q", environ, gang, place)
		}
	})
}
