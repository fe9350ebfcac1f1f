package batchjob

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck checks that mistakes are reported, and that valid input is accepted.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte(`#!/bin/sh
case $4 in
7) echo "JobId=7 JobName=x JobState=RUNNING Reason=None" ;;
8) echo "JobId=8 JobName=x JobState=COMPLETED Reason=None" ;;
9) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
*) echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1 ;;
esac
`), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, c := range map[string]struct {
		env  string
		s    Start
		want string
	}{
		"no job":               {},
		"a job":                {env: "SLURM_JOB_ID=7 SLURM_TASK_PID=4"},
		"one task of srun":     {env: "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0"},
		"srun":                 {env: "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", want: "srun has started gangrun 4 times"},
		"a shell of srun":      {env: "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", s: Start{Terminal: true}},
		"srun with terminals":  {env: "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1", s: Start{Terminal: true}, want: "srun has started gangrun 4 times"},
		"detached":             {env: "SLURM_JOB_ID=7 SLURM_TASK_PID=4", s: Start{Detach: true}, want: "--detach in job 7"},
		"detached from salloc": {env: "SLURM_JOB_ID=7", s: Start{Detach: true}},
		"components":           {env: "SLURM_JOB_ID=7 SLURM_HET_SIZE=2", want: "has 2 components"},
		"components, own":      {env: "SLURM_JOB_ID=7 SLURM_HET_SIZE=2", s: Start{OwnHosts: true}},
		"ended":                {env: "SLURM_JOB_ID=8", want: "does not run (COMPLETED)"},
		"ended, own hosts":     {env: "SLURM_JOB_ID=8", s: Start{OwnHosts: true}},
		"unknown":              {env: "SLURM_JOB_ID=9", want: "does not run (Slurm does not know it)"},
		"no answer":            {env: "SLURM_JOB_ID=10"},
	} {
		env := map[string]string{}
		for _, entry := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(entry, "=")
			env[k] = v
		}
		c.s.Lookup = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		err := c.s.Check(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
