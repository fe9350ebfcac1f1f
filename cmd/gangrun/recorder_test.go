package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestFlightRecorder checks that the dumps of PyTorch's flight recorders show which rank is missing from a collective,
// even though all ranks are at the same place of the program. This must work when gangrun finds the hang, and when
// PyTorch itself ends the ranks.
func TestFlightRecorder(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("testdata/hangs/recorder.py")
	if err != nil {
		t.Fatal(err)
	}
	const words = "nccl:all_reduce 7 of default_pg (recorder.py:12 average): rank 2 has not called it and ranks 0-1,3 wait"
	const offer = "run it with --faulthandler"
	for _, c := range []struct {
		name  string
		flags []string
		args  []string
		want  job.Category
		rank  int
		hint  bool // whether the hint says how to get better stacks
	}{
		{name: "hang", flags: []string{"--faulthandler"}, want: job.Hang, rank: 2},
		{name: "hang without --faulthandler", want: job.Hang, rank: -1, hint: true},
		{name: "timeout of PyTorch", args: []string{"timeout"}, want: job.CollectiveTimeout, rank: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			args := append([]string{"--output", "none", "--preflight", "off", "--retries", "0", "--grace", "1s", "--mpi", "none",
				"--hang-timeout", hangTimeout.String(), "--loopback", "2", "-n", "4"}, c.flags...)
			r := b.start(nil, append(append(args, "--", "python3", script, "2"), c.args...)...)
			if code := r.finish(); code == 0 {
				t.Error("exit code 0 of a gang that hangs")
			}
			var report runreport.Report
			decode(t, b.ask("report", "-o", "json"), &report)
			cause := report.Cause()
			if cause == nil || cause.Category != c.want || cause.Rank != c.rank {
				t.Fatalf("got %+v, want %s of rank %d", cause, c.want, c.rank)
			}
			if c.rank >= 0 && (!strings.HasSuffix(cause.Text, words) || !slices.ContainsFunc(cause.Evidence, func(l job.Line) bool { return l.Text == words })) {
				t.Errorf("got %q and %+v, want %q", cause.Text, cause.Evidence, words)
			}
			if _, err := os.Stat("/usr/bin/py-spy"); err != nil && strings.Contains(cause.Hint, offer) != c.hint {
				t.Errorf("got the hint %q", cause.Hint)
			}
			pipes, err := filepath.Glob(filepath.Join(b.dir, "*", "runs", "*", "attempts", "*", "*.pipe"))
			if err != nil || len(pipes) > 0 {
				t.Errorf("left %q, %v", pipes, err)
			}
		})
	}
}
