package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProcessHint checks that the hint names the limit on processes if the limit is reached, or nearly reached, and
// only then.
func TestProcessHint(t *testing.T) {
	for _, c := range []struct {
		limit, used uint64
		want        string // a part of the hint; "" if there must be no hint
	}{
		{unix.RLIM_INFINITY, 1 << 20, ""}, {4096, 100, ""}, {132, 100, ""},
		{131, 100, "may have 131 processes and threads and has 100"}, {131, 100, "ulimit -u 4096"}, {4096, 5000, "ulimit -u 10000"},
	} {
		if got := processHint(c.limit, c.used); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("limit %d, %d used: %q, want %q", c.limit, c.used, got, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	if got := Hint(fmt.Errorf("start the agent: %w", os.NewSyscallError("socketpair", unix.EMFILE))); !strings.Contains(got, "open files: raise the limit: ulimit -n ") {
		t.Errorf("without descriptors: %q", got)
	}
	if got := Hint(&os.PathError{Op: "open", Path: "/x", Err: unix.ENFILE}); !strings.Contains(got, "fs.file-max") {
		t.Errorf("without descriptors on the machine: %q", got)
	}
	for _, err := range []error{errors.New("too many open files"), unix.ENOENT} {
		if got := Hint(err); got != "" {
			t.Errorf("%v comes from a limit, it says: %q", err, got)
		}
	}
}

func TestOwnThreads(t *testing.T) {
	proc := t.TempDir()
	for name, text := range map[string]string{"17/status": "Name:\tx\nThreads:\t3\n", "18/status": "Threads:\t20\nx: y\n", "19/other": "Threads:\t100\n", "self/status": "Threads:\t1000\n"} {
		path := filepath.Join(proc, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if got := ownThreads(proc, os.Getuid()); got != 23 {
		t.Errorf("%d threads, want 23", got)
	}
	if got := ownThreads(proc, os.Getuid()+1); got != 0 {
		t.Errorf("another user has %d threads", got)
	}
}
