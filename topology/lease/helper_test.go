package lease

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/noskip"
)

// helperEnv is the variable that makes the test binary a helper. It has an order as JSON.
const helperEnv = "GANGRUN_LEASE_TEST_HELPER"

func TestMain(m *testing.M) {
	if text := os.Getenv(helperEnv); text != "" {
		os.Exit(help(text))
	}
	goleak.VerifyTestMain(m)
}

// order says what a helper process does.
type order struct {
	Dir, Host string
	Umask     *int
	// The helper holds Request until its standard input ends or it is killed. If Wait is true, it only writes a
	// ticket and waits.
	Request Request
	Wait    bool
	// If Gang is not nil, the process plays this gang instead.
	Gang *simulated
}

func help(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Println("error", err)
		return 2
	}
	if o.Umask != nil {
		syscall.Umask(*o.Umask)
	}
	err := func() error {
		if o.Gang != nil {
			return o.Gang.run(context.Background(), o.Dir)
		}
		s, err := Open(o.Dir, o.Host)
		if err != nil {
			return err
		}
		turn := s.Turn()
		defer turn.Close()
		held, waiting, err := turn.Try(context.Background(), o.Request)
		if err != nil {
			return err
		}
		if held == nil {
			text, _ := json.Marshal(waiting)
			fmt.Printf("waiting %s\n", text)
			if o.Wait {
				io.Copy(io.Discard, os.Stdin)
			}
			return nil
		}
		if err := turn.Close(); err != nil {
			return err
		}
		fmt.Println("held")
		io.Copy(io.Discard, os.Stdin)
		return held.Release()
	}()
	if err != nil {
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	return 0
}

// helper is a running helper process.
type helper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// start starts a helper as a user. uid 0 means the user of the test.
func start(t testing.TB, uid int, o order) *helper {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	// A helper that hangs fails only its own test.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	// Another user may not reach the binary by its name, but every process can reach its own binary.
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &helper{cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
	t.Cleanup(h.kill)
	return h
}

// line returns the helper's next line.
func (h *helper) line(t testing.TB) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the helper said %q and then %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (h *helper) want(t testing.TB, want string) {
	t.Helper()
	if got := h.line(t); !strings.HasPrefix(got, want) {
		t.Fatalf("the helper says %q, want %q", got, want)
	}
}

func (h *helper) kill() {
	if h.cmd.ProcessState == nil {
		h.cmd.Process.Kill()
		h.cmd.Wait()
	}
}

// end lets the helper release its GPUs, and waits until it ends.
func (h *helper) end(t testing.TB) {
	t.Helper()
	h.stdin.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("the helper ended with %v", err)
	}
}

// needRoot skips the test if it cannot act as several users.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		noskip.Skip(t, "only root can act as two users")
	}
}
