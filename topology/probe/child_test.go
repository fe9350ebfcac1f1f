package probe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOwner(t *testing.T) {
	if got := owner(os.Getpid()); got == "" {
		t.Error("nobody runs this test")
	}
	if got := owner(1 << 30); got != "" {
		t.Errorf("%q runs no process", got)
	}
}

func TestFindCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	dir := host(t, map[string]string{"nvidia-smi": "echo $$ > pid.new; mv pid.new pid; exec sleep 60"})
	done := make(chan error, 1)
	go func() {
		_, _, err := Find(ctx, Options{Path: dir})
		done <- err
	}()
	waitFile(t, filepath.Join(dir, "pid"))
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the child is still there: %v", err)
	}
	if _, _, err := Find(ctx, Options{Path: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestStuck checks that gangrun gives up on a child that cannot be killed, such as one in an uninterruptible
// sleep.
func TestStuck(t *testing.T) {
	t.Parallel()
	dir := host(t, map[string]string{"nvidia-smi": "exec sleep 60"})
	var left int
	run := func(ctx context.Context, limit time.Duration, path string, args ...string) (Output, error) {
		out, err := run(ctx, func(pid int) { left = pid }, limit, path, args)
		return out, err
	}
	_, findings, err := Find(t.Context(), Options{Path: dir, Limit: 50 * time.Millisecond, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, findings, []string{"warning: cannot even be killed; gangrun has left it behind as pid " + strconv.Itoa(left) + " | only a reboot"})
	kill(left)
	if _, err := unix.Wait4(left, nil, 0, nil); err != nil {
		t.Error(err)
	}
}

// TestRunLeavesNothing checks that the processes that a child has started end with the child.
func TestRunLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := host(t, map[string]string{"x": "sleep 60 & echo $!"})
	out, err := Run(t.Context(), time.Minute, filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out.Stdout)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || err == nil && strings.Contains(string(stat), ") Z ") {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("what the child has started lives on: %s", stat)
		}
	}
}

func TestLookPath(t *testing.T) {
	dir := host(t, map[string]string{"a": "true"})
	if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": filepath.Join(dir, "a"), "b": "", "c": "", "d": ""} {
		if got := lookPath(name, ":/nowhere:"+dir); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
