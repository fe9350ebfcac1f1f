package agent

import (
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aloneEnv names the test that a process has to itself.
const aloneEnv = "GANGRUN_TEST_ALONE"

// alone runs the test once more in a process of its own, for what changes the
// whole process: its limits, who reaps its children. True says that this is
// that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnv) == t.Name() {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), aloneEnv+"="+t.Name(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
	return false
}
