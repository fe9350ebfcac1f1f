package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/internal/testbuild"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// root is the root of gangrun's tree.
const root = "../.."

// TestFailures runs one job for each way in which gangrun finds a failure. TestSoakFailures runs all jobs.
func TestFailures(t *testing.T) {
	t.Parallel()
	runJobs(t, 20*time.Second, "syntax-error", "import-error", "core-dump", "cuda-init-failed")
}

// runJobs runs jobs with gangrun and in a loop, and checks the results of gangrun. It does not compare the times.
func runJobs(t *testing.T, longest time.Duration, only ...string) {
	if _, err := exec.LookPath("mpirun.openmpi"); err != nil {
		noskip.Skip(t, "Open MPI is not installed: %v", err)
	}
	c := config{root: root, gangrun: filepath.Join(t.TempDir(), "gangrun"), longest: longest, only: only}
	if err := testbuild.Gangrun(c.gangrun); err != nil {
		t.Fatal(err)
	}
	chosen, err := choose(only)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	rows, err := c.runAll(t.Context(), chosen, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, r := range rows {
		if wrong := r.verdict.wrong(r.reason); wrong != "" {
			t.Errorf("%s: %s\n%s", r.job, wrong, r.verdict.log)
		}
		if r.loop.wasted == 0 || r.loop.recovers && !r.verdict.recovers {
			t.Errorf("%s: the loop wasted %.1f rank-seconds, and the job got to its end: %v\n%s", r.job, r.loop.wasted, r.loop.recovers, r.loop.log)
		}
		if r.loop.tried != tries && !r.loop.recovers {
			t.Errorf("%s: the loop tried it %d times\n%s", r.job, r.loop.tried, r.loop.log)
		}
	}
}

// TestDocument compares the table in the README of the examples with the reasons in the code.
func TestDocument(t *testing.T) {
	path := filepath.Join(root, examples, "README.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), "| reason |")
	_, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table of reasons", path)
	}
	want := before + readme() + "\n" + after
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Errorf("%s has another table than internal/failures: run make docs", path)
	}
}

// TestReasons checks that every reason has a job file with as many ranks as the loop starts, and that every job file
// has a reason.
func TestReasons(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, examples, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var jobs, want []string
	for _, r := range reasons {
		if !slices.Contains(job.Categories(), r.category) || !slices.Contains([]caught{static, trial, gang}, r.by) {
			t.Errorf("%s has the category %q and is caught by %q", r.job, r.category, r.by)
		}
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); name != "gpus" {
			jobs = append(jobs, name)
			if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "\nranks: 4\n") {
				t.Errorf("%s does not say ranks: 4 (%v)", file, err)
			}
		}
	}
	for _, r := range reasons {
		want = append(want, r.job)
	}
	slices.Sort(want)
	if !slices.Equal(jobs, want) {
		t.Errorf("the job files are %q, the reasons have %q", jobs, want)
	}
}

func TestFailAfter(t *testing.T) {
	r := reason{minutes: reasons[0].minutes}
	if got := r.failAfter(1389480 * time.Millisecond); got != 13450*time.Millisecond {
		t.Errorf("a job that failed after 13.45 of 1389.48 min fails after %v of 1389.48 s", got)
	}
}

func TestReadTries(t *testing.T) {
	for _, test := range []struct {
		name, lines string
		want        loop
	}{
		{"all fail", "10.0 11.5 1 10.0\n12.0 13.0 139 12.0\n13.0 13.5 1 13.0\n", loop{tried: 3, wasted: 12}},
		{"the second ends well", "10.0 12.0 1 10.0\n12.0 19.0 0 12.0\n", loop{tried: 2, recovers: true, wasted: 8}},
		{"it resumes", "10.0 12.0 1 11.5\n12.0 19.0 0 18.0\n", loop{tried: 2, recovers: true, wasted: 2}},
		{"it resumes in vain", "10.0 12.0 1 11.5\n12.0 13.0 1 11.5\n13.0 14.0 1 11.5\n", loop{tried: 3, wasted: 16}},
	} {
		if got, err := readTries(test.lines); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	if _, err := readTries("10.0 11.0\n"); err == nil {
		t.Error("a line without an exit code is no error")
	}
}

// TestJudge checks that all problems of a result are found.
func TestJudge(t *testing.T) {
	at := func(seconds int) *time.Time { v := time.Unix(int64(seconds), 0); return &v }
	oom := job.Cause{Category: job.CPUOOM, Retry: job.RetryNever}
	refused := runreport.Report{State: job.StatePreflightFailed, Trial: &runreport.Trial{Steps: []runreport.TrialStep{
		{Ranks: 1, Started: at(0), Ended: at(2)}, {Ranks: 4, Started: at(2), Ended: at(3)}}},
		Preflight: []job.Finding{{Check: "trial-ranks", Severity: job.SeverityError, Cause: &oom}}}
	failed := runreport.Report{State: job.StateFailed, Attempts: []runreport.Attempt{{Cause: &oom}}, GPUSeconds: runreport.GPUSeconds{Used: 9, Wasted: 1}}
	retried := failed
	retried.State, retried.Attempts = job.StateSucceeded, append(slices.Clone(failed.Attempts), runreport.Attempt{})
	for _, test := range []struct {
		name   string
		report runreport.Report
		wasted float64
		reason reason
		wrong  string
	}{
		{"refused", refused, 6, reason{category: job.CPUOOM, by: trial}, ""},
		{"failed", failed, 9, reason{category: job.CPUOOM, by: gang}, ""},
		{"retried", retried, 1, reason{category: job.CPUOOM, by: gang, recovers: true}, ""},
		{"late", failed, 9, reason{category: job.CPUOOM, by: static}, "caught by gang, want static preflight"},
		{"mistaken", failed, 9, reason{category: job.Killed, by: gang, recovers: true}, "category cpu-oom, want killed; action never, want once; recovers false, want true"},
	} {
		v := judge(test.report)
		if wrong := v.wrong(test.reason); wrong != test.wrong || v.wasted != test.wasted {
			t.Errorf("%s: wrong is %q, want %q; wasted %v, want %v", test.name, wrong, test.wrong, v.wasted, test.wasted)
		}
	}
}

// TestCheck checks that a wrong category and too much waste are errors. Each error must say what is wrong.
func TestCheck(t *testing.T) {
	r := reasons[0]
	good := row{reason: r, verdict: verdict{category: r.category, action: r.category.Action(), by: r.by, wasted: 1}, loop: loop{wasted: 10}}
	if err := check([]row{good}); err != nil {
		t.Error(err)
	}
	bad := good
	bad.verdict.category, bad.verdict.wasted = job.Killed, 2
	err := check([]row{bad})
	if err == nil || !strings.Contains(err.Error(), "category killed, want cpu-oom") || !strings.Contains(err.Error(), "more than 10 % of the loop's 10.0") {
		t.Errorf("the error is %v", err)
	}
}

// TestPage checks that the page has the totals and the shares of the loops, and marks wrong results.
func TestPage(t *testing.T) {
	saver := reason{name: "S", job: "s", category: job.CPUOOM, by: gang, saves: true}
	other := reason{name: "O", job: "o", category: job.CPUOOM, by: gang}
	right := verdict{category: job.CPUOOM, action: job.RetryNever, by: gang, wasted: 2}
	wrong := right
	wrong.action = job.RetryOnce
	rows := []row{{saver, right, loop{wasted: 30}, loop{wasted: 6}}, {other, wrong, loop{wasted: 10}, loop{wasted: 10}}}
	got := page(rows, time.Minute)
	for _, want := range []string{
		"| S | [`cpu-oom`](categories.md#cpu-oom) | yes | `never` | gang | 2.0 | 30.0 | 6.7 % | 6.0 |\n",
		"| O | [`cpu-oom`](categories.md#cpu-oom) | NO | `once` | gang | 2.0 | 10.0 | 20.0 % | 10.0 |\n",
		"| all |  |  |  |  | 4.0 | 40.0 | 10.0 % | 16.0 |\n",
		"account for 75.0 % of the total of the loop. gangrun wastes 25.0 % of what the resuming loop wastes.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	if lines := strings.Split(text(rows), "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], "all     ") {
		t.Errorf("the table is\n%s", text(rows))
	}
}
