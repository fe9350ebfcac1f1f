package openmpi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/wire"
)

// newGang returns a gang whose logs are in dir. Its host is the host of mpirun or another one.
func newGang(dir string, mpirun *wire.Mpirun) *gang.Gang {
	return gang.New(gang.Config{Host: "h2", Start: &wire.Start{Gang: "r/1", LogDir: []byte(dir), Mpirun: mpirun}, Reports: &report.Queue{}})
}

func TestLogName(t *testing.T) {
	for want, mpirun := range map[string]*wire.Mpirun{"mpirun.log": {}, "daemon-h2.log": nil} {
		dir := t.TempDir()
		if log := New(newGang(dir, mpirun)).Log(); log.Path != filepath.Join(dir, want) {
			t.Errorf("the log is %q, want %q", log.Path, want)
		}
	}
}

// TestLogIsCompleted checks that the log has the messages of ranks that mpirun has not printed.
func TestLogIsCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		printed string
		mpirun  *wire.Mpirun
		want    string
	}{
		"all printed":        {"[h:1] one\n[h:1] two\n", &wire.Mpirun{}, "[h:1] one\n[h:1] two\n"},
		"nothing printed":    {"", &wire.Mpirun{}, "[h:1] one\n[h:1] two\n"},
		"an error of mpirun": {"[h:0] ORTE_ERROR_LOG: Out of resource\n[h:1] one\n", &wire.Mpirun{}, "[h:0] ORTE_ERROR_LOG: Out of resource\n[h:1] one\n[h:1] two\n"},
		"an open line":       {"[h:1] one", &wire.Mpirun{}, "[h:1] one\n[h:1] two\n"},
		"another host":       {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newRuntimeLog(newGang(t.TempDir(), c.mpirun))
			if err := os.WriteFile(l.Path, []byte(c.printed), 0o600); err != nil {
				t.Fatal(err)
			}
			l.Grow(len(c.printed))
			l.fromRank(1, "[h:1] one\n\n[h:1] two\n")
			l.complete()
			if got, err := os.ReadFile(l.Path); err != nil || string(got) != c.want {
				t.Errorf("the log is %q, %v; want %q", got, err, c.want)
			}
			var followed strings.Builder
			var err error
			ended := false
			for f := output.Follow(l.Stream, int64(len(c.printed))); !ended; {
				_, ended, err = f.Step(make([]byte, 100), func(piece []byte, _ bool) error { followed.Write(piece); return nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			if added := c.want[len(c.printed):]; followed.String() != added {
				t.Errorf("who follows the log sees %q, want %q", followed.String(), added)
			}
		})
	}
}
