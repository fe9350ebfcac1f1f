package main_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestHostVerdict checks the exit code for hosts that cannot be reached. Whether the job should be queued again
// depends on the reason.
func TestHostVerdict(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ends := func(command, hosts, ranks, mode, says string, want int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		cmd := bed.Controller().Command(ctx, gangrun, command, "--hosts", hosts, "-n", ranks, "--exit-code", mode, "--", "true")
		cmd.Dir = bed.Shared()
		var errs bytes.Buffer
		cmd.Stderr = &errs
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(errs.String(), says) {
			t.Errorf("gangrun %s --hosts %s --exit-code %s: exit code %d, want %d and %q:\n%s", command, hosts, mode, code, want, says, errs.String())
		}
	}
	const refused = `the login of user "bob" was refused`
	ends("run", "bob@h1:2", "2", "verdict", refused, 93)
	ends("run", "bob@h1:2", "2", "rank", refused, 69)
	ends("run", "h1:1,bob@h2:2", "2", "verdict", refused, 93)
	ends("preflight", "h1:1,bob@h2:2", "1", "verdict", refused, 93)
	ends("preflight", "h1:1,bob@h2:2", "1", "rank", refused, 75)

	known, err := os.ReadFile(bed.Controller().KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bed.Controller().KnownHosts(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ends("run", "h1:2", "2", "verdict", "host key", 93)
	if err := os.WriteFile(bed.Controller().KnownHosts(), known, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := bed.Host(2).StopSSH(); err != nil {
		t.Fatal(err)
	}
	const down = "connection refused"
	ends("run", "h2:2", "2", "verdict", down, 75)
	ends("run", "h1:1,h2:1", "2", "verdict", down, 75)
	ends("run", "bob@h1:1,h2:1", "1", "verdict", down, 75) // h2 may come back later
	ends("preflight", "h1:1,h2:1", "1", "verdict", down, 75)
	ends("preflight", "h1:1,h2:1", "1", "rank", down, 75)
}
