package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// slurmReport has the parts of a run's report that the tests read.
type slurmReport struct {
	State    job.State
	ExitCode *int `json:"exit_code"`
	Attempts []struct {
		Cause      *job.Cause
		ResumeFrom string `json:"resume_from"`
	}
}

// said returns the category of the first attempt's cause. If there is none, it returns the state of the run.
func (r slurmReport) said() string {
	if len(r.Attempts) > 0 && r.Attempts[0].Cause != nil {
		return "`" + string(r.Attempts[0].Cause.Category) + "`"
	}
	return "`" + string(r.State) + "`"
}

// code returns the exit code in the form of the table.
func (r slurmReport) code() string {
	if r.ExitCode == nil {
		return "none"
	}
	return strconv.Itoa(*r.ExitCode)
}

// report reads a report that a job of bob has written to a file.
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

// awaitFile waits until a job has made a file in bob's directory.
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

// TestSlurmEnds checks that gangrun distinguishes the ways in which Slurm ends a job, and has the right exit code. No
// process may be left on any node.
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
		ending   string   // the first cell of the row in docs/batch.md
		flags    []string // flags of sbatch
		run      string   // flags of gangrun run
		rank     string   // the script of each rank
		end      func(id string)
		category job.Category
		code     int
	}{
		{name: "limit", ending: "the time limit passes", end: func(id string) { exec("scontrol", "update", "JobId="+id, "EndTime=now+2") }, category: job.TimeLimit, code: 93},
		{name: "reserve", ending: "the time limit comes near, with `--time-reserve`", flags: []string{"-t", "1"}, run: "--time-reserve 30s", category: job.TimeLimit, code: 93},
		{name: "saved", ending: "the time limit comes near, and `--before-stop` has written a checkpoint", flags: []string{"-t", "1"}, run: "--time-reserve 30s --before-stop sigusr1 --checkpoint-dir ck --resume", category: job.TimeLimit, code: 75,
			rank: `trap 'echo {} > ck/step_5.json; echo saved > saved-$RANK' USR1;`},
		{name: "cancelled", ending: "`scancel`", end: func(id string) { exec("scancel", id) }, category: job.Cancelled, code: 143},
		{name: "requeued", ending: "`scontrol requeue`", end: func(id string) { exec("scontrol", "requeue", id) }, category: job.Preempted, code: 75},
		{name: "signal", ending: "`--signal=USR1`, and the ranks handle it", end: func(id string) { exec("scancel", "-s", "USR1", id) }, code: 0,
			rank: `trap 'echo got > got-$RANK; exit 0' USR1;`},
		{name: "signal stops", ending: "`--signal=USR2`, with `--on-signal stop`", run: "--on-signal stop", end: func(id string) { exec("scancel", "-s", "USR2", id) }, category: job.TimeLimit, code: 93},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := b.part(t)
			id := b.submit(`[[ ${SLURM_RESTART_COUNT:-0} = 0 ]] || exit 0
mkdir -p ck
exec gangrun run -n 2 --preflight off --mpi none --exit-code verdict -o json `+c.run+` -- bash -c '`+strings.ReplaceAll(c.rank, "'", `'"'"'`)+` touch ready-$RANK; while :; do sleep 0.1; done' > out.json`, append([]string{"-N2", "-c1"}, c.flags...)...)
			b.awaitFile(t, id, "ready-0")
			b.awaitFile(t, id, "ready-1")
			if c.end != nil {
				c.end(id)
			}
			if c.name == "requeued" { // Slurm waits two minutes before it starts a requeued job
				if _, err := b.Await(id, patience, func(j slurm.Job) bool { return j.State() == "PENDING" }); err != nil {
					t.Fatal(err)
				}
				exec("scancel", id)
			}
			_, out := b.ended(id)
			r := b.report(t, "out.json", out)
			if r.ExitCode == nil || *r.ExitCode != c.code {
				t.Errorf("exit code %v, want %d\n%s", r.ExitCode, c.code, out)
			}
			if c.category != "" && (len(r.Attempts) == 0 || r.Attempts[0].Cause == nil || r.Attempts[0].Cause.Category != c.category) {
				t.Errorf("%+v, want %s\n%s", r, c.category, out)
			}
			if c.name == "saved" {
				b.awaitFile(t, id, "saved-0")
			}
			b.ending(c.ending, r.said(), r.code())
		})
	}
	// Under salloc, gangrun runs outside the job, and Slurm sends it no signals.
	t.Run("salloc", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		cmd := b.Command(t.Context(), "bob", "salloc", "-Q", "-N2", "-n2", "-c1", "env", "-C", b.dir, "GANGRUN_HOME="+b.dir+"/runs", b.mark, "bash", "-c",
			`echo $SLURM_JOB_ID > id; exec ../gangrun run -n 2 --preflight off --mpi none -o json -- bash -c 'touch ready-$RANK; exec sleep 600' > out.json`)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(b.dir + "/ready-1"); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatal("it does not start")
			}
		}
		id, _ := os.ReadFile(b.dir + "/id")
		exec("scancel", strings.TrimSpace(string(id)))
		began := time.Now()
		_ = cmd.Wait()
		r := b.report(t, "out.json", "")
		if r.ExitCode == nil || *r.ExitCode != 143 || time.Since(began) > time.Minute {
			t.Errorf("after %s: %+v", time.Since(began), r)
		}
		b.ending("`scancel` of a job of `salloc`", r.said(), r.code())
	})
}

// submitted runs gangrun submit as bob, and returns the IDs of the jobs of the trial and of the gang.
func (b *slurmBed) submitted(t *testing.T, args ...string) (trial, gang string) {
	t.Helper()
	env := []string{"env", "GANGRUN_HOME=" + b.dir + "/runs", b.mark}
	out, err := b.Exec(t.Context(), "bob", append(append(env, filepath.Join(b.Dir("bob"), "gangrun"), "submit", "-o", "json", "--slurm", "-N2 -c1"), args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var ids struct{ Trial, Gang string }
	if err := json.Unmarshal([]byte(out), &ids); err != nil || ids.Trial == "" || ids.Gang == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return ids.Trial, ids.Gang
}

// TestSlurmRequeue checks that a job that gangrun requeues resumes from its checkpoint, without the node that caused
// the failure.
func TestSlurmRequeue(t *testing.T) {
	t.Parallel()
	b := newSlurmBed(t, 4)
	t.Run("time limit", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit(`mkdir -p ck
gangrun run -n 2 --preflight off --mpi none --requeue 5 --time-reserve 30s --checkpoint-dir ck -- bash -c '
first=1; step=0; [[ -z $GANGRUN_RESUME_FROM ]] || first=0
((first)) || { step=${GANGRUN_RESUME_FROM##*step_}; step=${step%.json}; }
echo $step >> began-$RANK
while ((first || step < 40)); do
	((++step)); echo "step $step/40"; sleep 0.2
	((RANK)) || { echo {} > .new; mv .new ck/step_$step.json; }
done'`, "-N2", "-c1", "-t1")
		j, out := b.ended(id)
		began, _ := os.ReadFile(filepath.Join(b.dir, "began-0"))
		if legs := strings.Fields(string(began)); j.State() != "COMPLETED" || len(legs) < 2 || legs[0] != "0" || legs[1] == "0" {
			t.Errorf("%s, began at %q\n%s", j.State(), began, out)
		}
		b.ending("the time limit comes near in each leg, with `--requeue`", b.said(out, "job .* is queued again.*"), "0")
	})
	t.Run("bad node", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit(`gangrun run -n 2 --preflight off --mpi none --retries 0 --requeue 3 --output all -- bash -c '
[[ $RANK = 0 ]] || { [[ -e failed ]] || { hostname > failed; echo "RuntimeError: CUDA error: uncorrectable ECC error encountered" >&2; exit 1; }; }; hostname'`, "-N2", "-c1")
		j, out := b.ended(id)
		failed, _ := os.ReadFile(filepath.Join(b.dir, "failed"))
		node := strings.TrimSpace(string(failed))
		if j.State() != "COMPLETED" || node == "" || j["ExcNodeList"] != node {
			t.Errorf("%s, failed on %q, without %s\n%s", j.State(), node, j["ExcNodeList"], out)
		}
		b.ending("a rank prints an ECC error, with `--requeue`", b.said(out, "job .* is queued again.*"), "0")
	})
	t.Run("submit, a mistake", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		trial, gang := b.submitted(t, "-n", "2", "--", "python3", "-c", "import nosuch")
		j, out := b.ended(trial)
		if j["ExitCode"] != "78:0" {
			t.Errorf("trial: %s %s\n%s", j.State(), j["ExitCode"], out)
		}
		if j, out := b.ended(gang); j.State() != "CANCELLED" || out != "" {
			t.Errorf("gang: %s\n%s", j.State(), out)
		}
		b.ending("`gangrun submit` of a job with `import nosuch`", b.said(out, "trial: failed"), "78")
	})
	t.Run("submit", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		trial, gang := b.submitted(t, "-n", "2", "--output", "all", "--", "bash", "-c", "echo rank $RANK of $WORLD_SIZE")
		if j, out := b.ended(trial); j.State() != "COMPLETED" || !strings.Contains(out, "trial: passed") {
			t.Errorf("trial: %s\n%s", j.State(), out)
		}
		j, out := b.ended(gang)
		if j.State() != "COMPLETED" || !strings.Contains(out, "rank 1 of 2") || strings.Contains(out, "trial:") {
			t.Errorf("gang: %s\n%s", j.State(), out)
		}
		list, err := b.Exec(t.Context(), "bob", "env", "GANGRUN_HOME="+b.dir+"/runs", filepath.Join(b.Dir("bob"), "gangrun"), "ps")
		if err != nil || !strings.Contains(list, " "+gang+"\n") {
			t.Errorf("%v\n%s", err, list)
		}
		b.ending("`gangrun submit` of a good job", "`trial: passed` in the first job, no trial in the second", "0")
	})
	t.Run("no progress", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit(`gangrun run -n 1 --preflight off --mpi none --retries 0 --requeue 9 -- bash -c 'echo x >> legs; echo "ConnectionResetError: [Errno 104] Connection reset by peer" >&2; exit 1'`, "-N1", "-c1")
		j, out := b.ended(id)
		legs, _ := os.ReadFile(filepath.Join(b.dir, "legs"))
		if j.State() != "FAILED" || string(legs) != "x\nx\n" || !strings.Contains(out, "two legs in a row") {
			t.Errorf("%s, %q\n%s", j.State(), legs, out)
		}
		b.ending("two legs without a checkpoint, with `--requeue`", b.said(out, "job .* is not queued again.*"), strings.TrimSuffix(j["ExitCode"], ":0"))
	})
}
