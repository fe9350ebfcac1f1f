package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// TestMPIDaemonLost kills mpirun or one of its daemons while a gang runs. The cause must say so, whatever then happens
// to the ranks.
func TestMPIDaemonLost(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	for _, c := range []struct {
		daemon string
		hosts  int
		host   string
	}{{"mpirun", 1, "h1"}, {"mpirun", 2, "h1"}, {"orted", 2, "h2"}} {
		t.Run(fmt.Sprintf("%s/%d", c.daemon, c.hosts), func(t *testing.T) {
			t.Parallel()
			r := startMPI(t, job.MPIOpenMPI, mpiRanks, c.hosts, []string{"hang-barrier", "2"})
			r.await("every rank in MPI", func() bool { return r.waits() })
			killed := 0
			for pid, line := range r.marked()[ownMark] {
				if name, _, _ := strings.Cut(line, " "); filepath.Base(name) == c.daemon && r.strike(pid, unix.SIGKILL) {
					killed++
				}
			}
			if killed != 1 {
				t.Fatalf("%d of %s killed", killed, c.daemon)
			}
			code := r.finish()
			r.gone()
			if code != 75 {
				t.Errorf("exit code %d, want 75", code)
			}
			if cause := r.report().Cause(); cause == nil || cause.Category != job.MPIRuntime || cause.Signature != "daemon-lost" || cause.Rank != -1 || cause.Host != c.host {
				t.Errorf("cause %+v, want a lost daemon on %s", cause, c.host)
			}
		})
	}
}

// waits reports whether every rank of a gang that hangs in a barrier has called MPI_Init.
func (r *controlled) waits() bool {
	for rank := range mpiRanks {
		logs, _ := filepath.Glob(filepath.Join(r.dir, "home/runs/*/attempts/1", job.LogName(rank, "out")))
		if len(logs) != 1 {
			return false
		}
		if log, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(log), " waits\n") {
			return false
		}
	}
	return true
}
