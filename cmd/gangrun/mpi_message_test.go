package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestMPIMessages checks that a message of rank 0 at its end becomes the cause. gangrun must not retry the gang if the
// message shows that a retry is of no use.
func TestMPIMessages(t *testing.T) {
	t.Parallel()
	const style = "ERROR: Unrecognized pair style 'foo' (src/force.cpp:278); Last command: pair_style foo"
	for mode, want := range map[string]struct {
		category  job.Category
		signature string
		text      string
		attempts  int
	}{
		"one-aborts":   {job.IncorrectInputs, "program-input", style, 1},
		"all-abort":    {job.IncorrectInputs, "program-input", `Error in routine read_namelists (1): bad line in namelist &electrons: " conv_thrr=1d-8"`, 1},
		"stderr-abort": {job.IncorrectInputs, "program-input", "Fatal error: There is no domain decomposition for 3 ranks that is compatible with the given box and a minimum cell size of 1.2 nm", 1},
		"all-exit":     {job.IncorrectInputs, "program-input", style, 1},
		"stop":         {job.SemanticError, "program-error", "STOP the grid has no points", 1},
		"bare":         {job.MPIError, "mpi-abort", "", 2},
		"crash":        {job.InvalidMemoryAccess, "", "", 2},
	} {
		for _, flavour := range mpiFlavours {
			program := mpiProgram(t, "testdata/mpi/speak.c", flavour)
			t.Run(fmt.Sprintf("%s/%s", mode, flavour), func(t *testing.T) {
				t.Parallel()
				r := newBench(t).start(nil, "--mpi", string(flavour), "--preflight", "off", "--retries", "1", "-n", "3", "--", program, mode)
				code := r.finish()
				r.gone()
				report := r.report()
				if code == 0 || report.State != job.StateFailed || len(report.Attempts) != want.attempts {
					t.Fatalf("exit code %d, state %s, %d attempts, want a failure after %d", code, report.State, len(report.Attempts), want.attempts)
				}
				c := report.Attempts[0].Cause
				if c == nil || c.Category != want.category || want.signature != "" && c.Signature != want.signature || c.Rank != 0 || !strings.HasSuffix(c.Text, want.text) {
					t.Errorf("cause %+v, want %+v of rank 0", c, want)
				}
			})
		}
	}
}

// TestMPITruncated checks that gangrun shows the complete error message of an MPI library, and nothing before it. The
// cause must name the file that has the message.
func TestMPITruncated(t *testing.T) {
	t.Parallel()
	for flavour, want := range map[job.MPI]struct{ file, first, last string }{
		job.MPIMPICH:   {"rank-0000.err", "Abort(", "count=4, MPI_CHAR"},
		job.MPIOpenMPI: {"mpirun.log", "[", "potentially your MPI job)"},
	} {
		program := mpiProgram(t, "testdata/mpi/speak.c", flavour)
		t.Run(string(flavour), func(t *testing.T) {
			r := newBench(t).start(nil, "--mpi", string(flavour), "--preflight", "off", "--retries", "0", "-n", "2", "--", program, "truncate")
			r.finish()
			r.gone()
			c := r.report().Attempts[0].Cause
			if c == nil || c.Signature != "mpi-truncate" || c.Rank != 0 {
				t.Fatalf("cause %+v, want mpi-truncate of rank 0", c)
			}
			for _, line := range append(c.Evidence, c.After...) {
				if filepath.Base(line.File) != want.file || line.Text != "" && !strings.Contains(r.logged(line.File), line.Text+"\n") {
					t.Errorf("%+v is no line of %s", line, want.file)
				}
			}
			if said := c.Evidence[0].Text; !strings.HasPrefix(said, want.first) {
				t.Errorf("the text begins with %q", said)
			}
			_, shown, _ := strings.Cut(r.file("stderr"), "exit code ")
			if !strings.Contains(shown, want.last) {
				t.Errorf("%q is not shown at the end: %s", want.last, shown)
			}
			if logs := string(r.ask("logs", "-o", "json")); !strings.Contains(logs, "/"+want.file+`"`) {
				t.Errorf("%s is not among the logs: %s", want.file, logs)
			}
		})
	}
}

// logged returns the content of a log file.
func (b *bench) logged(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		b.t.Error(err)
	}
	return string(data)
}
