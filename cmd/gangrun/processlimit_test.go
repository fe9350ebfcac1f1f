package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestProcessLimitIsNamed checks that gangrun names the limit on the processes of a user, with its value, if there is
// no room for the agent. The Go runtime decides how many threads gangrun itself needs, so the test raises the limit
// until gangrun starts.
func TestProcessLimitIsNamed(t *testing.T) {
	testhosts.Need(t) // the limit does not apply to root, so the test needs another user
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "gangrun-test-limit-") // another user must be able to enter this directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(dir, "gangrun")
	if out, err := exec.Command("cp", gangrun, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for limit := 8; limit < 64; limit++ {
		cmd := exec.CommandContext(t.Context(), "setpriv", "--reuid", "7008", "--regid", "7008", "--clear-groups",
			"prlimit", fmt.Sprintf("--nproc=%d", limit), program, "run", "--preflight", "off", "-n", "1", "--", "true")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GANGRUN_HOME="+filepath.Join(dir, "home"))
		out, err := cmd.CombinedOutput()
		text := string(out)
		if err == nil {
			t.Fatalf("with %d processes it runs, and with fewer no agent failed", limit)
		}
		if !strings.Contains(text, "ended before it answered") {
			continue
		}
		for _, want := range []string{fmt.Sprintf("this user may have %d processes and threads and has ", limit), "raise the limit: ulimit -u ", "exit code  69 "} {
			if !strings.Contains(text, want) {
				t.Errorf("with %d processes it does not say %q:\n%s", limit, want, text)
			}
		}
		for _, not := range []string{"server preface", "and the network"} {
			if strings.Contains(text, not) {
				t.Errorf("with %d processes it says %q:\n%s", limit, not, text)
			}
		}
		return
	}
	t.Error("under no limit the agent ended before it answered")
}
