package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestHostsOfOneNameInTwoDomains checks that a host of another domain is another machine, even if its name without the
// domain is that of this machine. Its ranks must run there. For its own addresses, this machine needs no SSH.
func TestHostsOfOneNameInTwoDomains(t *testing.T) {
	t.Parallel()
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	bed := testhosts.Up(t, 1)
	c := bed.Controller()
	name, err := c.Exec(t.Context(), "hostname")
	if err != nil {
		t.Fatal(err)
	}
	plain, _, _ := strings.Cut(strings.TrimSpace(name), ".")
	far := plain + ".siteb"
	config, err := os.ReadFile(c.SSHConfig())
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("Host %s\n  HostName %v\n  User root\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n", far, bed.Host(1).Addr(), c.Key("id_ed25519"), c.KnownHosts())
	if err := os.WriteFile(c.SSHConfig(), append(config, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	for hosts, want := range map[string]string{far: "h1", plain: plain, "localhost": plain, bed.Host(1).Addr().String(): "h1"} {
		for _, command := range [][]string{
			{"mpiexec", "-hosts", hosts, "-n", "1", "hostname"},
			{"run", "--preflight", "off", "--hosts", hosts, "-n", "1", "--", "hostname"},
		} {
			cmd := c.Command(t.Context(), append([]string{gangrun}, command...)...)
			cmd.Dir = bed.Shared()
			cmd.Env = append(cmd.Env, "GANGRUN_HOME="+filepath.Join(t.TempDir(), "runs"))
			var errs lockedBuffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("gangrun %s: %v\n%s", strings.Join(command, " "), err, errs.String())
				continue
			}
			// gangrun run puts the rank before each line.
			said := strings.TrimSpace(strings.TrimPrefix(string(out), "[0]"))
			if got, _, _ := strings.Cut(said, "."); got != want {
				t.Errorf("gangrun %s ran on %q, want %q\n%s", strings.Join(command, " "), got, want, errs.String())
			}
		}
	}
}
