package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// trainSource is a training whose loss reaches its target. It writes a checkpoint when gangrun asks for one.
const trainSource = "testdata/mpi/train.c"

// TestEarlyStop trains on four hosts, with and without MPI, until the loss reaches its target. gangrun must then ask
// the ranks for a checkpoint and end the gang. It must also end a gang that ignores the request, within the limits.
func TestEarlyStop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flavour job.MPI
		how     string
		ask     job.BeforeStop
		code    int
	}{
		{job.MPINone, "saves", job.BeforeStopUSR1, 0},
		{job.MPIMPICH, "quits", job.BeforeStopFile, 0},
		{job.MPIOpenMPI, "saves", job.BeforeStopFile, 0},
		{job.MPIOpenMPI, "ignores", job.BeforeStopFile, 1},
	} {
		t.Run(string(c.flavour)+" "+c.how, func(t *testing.T) { // not in parallel, because the ranks use all cores
			b := newBench(t)
			if err := os.Mkdir(filepath.Join(b.dir, "ck"), 0o700); err != nil {
				t.Fatal(err)
			}
			wait, grace := farPatience, farPatience
			if c.how == "ignores" {
				wait, grace = time.Second, time.Second
			}
			args := []string{"--output", "none", "--preflight", "off", "--mpi", string(c.flavour), "--loopback", "4", "-n", "4", "--grace", grace.String(),
				"--checkpoint-dir", "ck", "--before-stop", string(c.ask), "--before-stop-wait", wait.String(), "--early-stop", "reached=stop", "--target", "0.25", "--"}
			if c.flavour == job.MPINone {
				script, err := filepath.Abs("testdata/early/train.py")
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, "python3", script)
			} else {
				args = append(args, mpiProgram(t, trainSource, c.flavour))
			}
			code := b.start(nil, append(args, c.how)...).finish()
			var r runreport.Report
			decode(t, b.ask("report", "-o", "json"), &r)
			a := r.Last()
			if code != c.code || r.State != job.StateStoppedEarly || r.Cause() == nil || r.Cause().Category != job.StoppedEarly || len(r.Attempts) != 1 {
				t.Fatalf("code %d, %s: %s", code, r.State, b.file("stderr"))
			}
			if len(a.Curves) == 0 || a.Curves[0].Kind != "reached" || a.Curves[0].Action != job.EarlyEnd || (a.Saved != nil) != (c.code == 0) {
				t.Errorf("curves %+v, saved %+v", a.Curves, a.Saved)
			}
			for _, x := range a.Exits {
				killed := x.Status == job.Signalled && x.Signal == 9
				if !x.Stopped || c.how == "quits" && (x.Status != job.Exited || x.Code != 0) || killed != (c.how == "ignores") {
					t.Errorf("%s", x)
				}
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "asking the ranks for a checkpoint") ||
				c.how == "ignores" && !strings.Contains(notes, "no new good checkpoint was found within 1s") {
				t.Errorf("notes: %s", notes)
			}
		})
	}
}
