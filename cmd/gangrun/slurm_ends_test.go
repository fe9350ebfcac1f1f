package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// slurmReport is what a test reads of a report that a job has printed.
type slurmReport struct {
	State    job.State
	ExitCode *int `json:"exit_code"`
	Attempts []struct {
		Cause      *job.Cause
		ResumeFrom string `json:"resume_from"`
	}
}

// report reads a report that a job of bob's has written to a file.
func (b *slurmBed) report(t *testing.T, name, out string) (r slurmReport) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, data, out)
	}
	return r
}

// awaitFile waits until a file of bob's is there.
func (b *slurmBed) awaitFile(t *testing.T, id, name string) {
	t.Helper()
	if _, err := b.Await(id, patience, func(slurm.Job) bool {
		_, err := os.Stat(filepath.Join(b.dir, name))
		return err == nil
	}); err != nil {
		out, _ := os.ReadFile(b.Output("bob", id))
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestSlurmEnds: what Slurm does to a job is told apart, with the right exit code, and nothing is
// left on any node.
func TestSlurmEnds(t *testing.T) {
	t.Parallel()
	b := newSlurmBed(t, 4)
	exec := func(argv ...string) {
		t.Helper()
		if _, err := b.Exec(t.Context(), "root", argv...); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name     string
		flags    []string // of sbatch
		run      string   // flags of gangrun run
		rank     string   // what each rank does
		end      func(id string)
		category job.Category
		code     int
	}{
		{name: "limit", end: func(id string) { exec("scontrol", "update", "JobId="+id, "EndTime=now") }, category: job.TimeLimit, code: 93},
		{name: "reserve", flags: []string{"-t", "1"}, run: "--time-reserve 55s", category: job.TimeLimit, code: 93},
		{name: "saved", flags: []string{"-t", "1"}, run: "--time-reserve 52s --before-stop sigusr1 --checkpoint-dir ck --resume", category: job.TimeLimit, code: 75,
			rank: `trap 'echo {} > ck/step_5.json; echo saved > saved-$RANK' USR1;`},
		{name: "cancelled", end: func(id string) { exec("scancel", id) }, category: job.Cancelled, code: 143},
		{name: "requeued", end: func(id string) { exec("scontrol", "requeue", id) }, category: job.Preempted, code: 75},
		{name: "signal", end: func(id string) { exec("scancel", "-s", "USR1", id) }, code: 0,
			rank: `trap 'echo got > got-$RANK; exit 0' USR1;`},
		{name: "signal stops", run: "--on-signal stop", end: func(id string) { exec("scancel", "-s", "USR2", id) }, category: job.TimeLimit, code: 93},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(c.name, " ", "-")
			id := b.submit(`[[ ${SLURM_RESTART_COUNT:-0} = 0 ]] || exit 0
mkdir -p `+name+`/ck; cd `+name+`
exec gangrun run -n 2 --preflight off --mpi none --exit-code verdict -o json `+c.run+` -- bash -c '`+strings.ReplaceAll(c.rank, "'", `'"'"'`)+` touch ready-$RANK; while :; do sleep 0.1; done' > out.json`, append([]string{"-N2", "-c1"}, c.flags...)...)
			b.awaitFile(t, id, name+"/ready-0")
			b.awaitFile(t, id, name+"/ready-1")
			if c.end != nil {
				c.end(id)
			}
			if c.name == "requeued" { // Slurm lets two minutes pass before it starts such a job again
				if _, err := b.Await(id, patience, func(j slurm.Job) bool { return j.State() == "PENDING" }); err != nil {
					t.Fatal(err)
				}
				exec("scancel", id)
			}
			_, out := b.ended(id)
			r := b.report(t, name+"/out.json", out)
			if r.ExitCode == nil || *r.ExitCode != c.code {
				t.Errorf("exit code %v, want %d\n%s", r.ExitCode, c.code, out)
			}
			if c.category == "" {
				return
			}
			if len(r.Attempts) == 0 || r.Attempts[0].Cause == nil || r.Attempts[0].Cause.Category != c.category {
				t.Errorf("%+v, want %s\n%s", r, c.category, out)
			}
			if c.name == "saved" {
				b.awaitFile(t, id, name+"/saved-0")
			}
		})
	}
	t.Cleanup(b.nothingLeft)
}
