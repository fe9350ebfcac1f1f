package main_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestMpiexecHosts checks that gangrun mpiexec starts ranks on the hosts of its arguments in turn.
func TestMpiexecHosts(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	does := func(t *testing.T, env []string, args ...string) (code int, out []string, errs string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		cmd := bed.Controller().Command(ctx, slices.Concat([]string{"env"}, env, []string{gangrun, "mpiexec"}, args)...)
		cmd.Dir = bed.Shared()
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		out = strings.Split(strings.TrimSpace(stdout.String()), "\n")
		slices.Sort(out)
		return cmd.ProcessState.ExitCode(), out, stderr.String()
	}
	slurm := []string{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=h[1-2]", "SLURM_TASKS_PER_NODE=2,1"}
	for _, test := range []struct {
		name  string
		env   []string
		words string
		want  string // the hosts of the ranks, in rank order
	}{
		{"turns", nil, "-hosts h1,h2 -n 4", "h1 h2 h1 h2"},
		{"slots", nil, "-hosts h2:2,root@h1", "h2 h2 h1"},
		{"this machine too", nil, "-ppn 2 -hosts localhost,h1", "ctl ctl h1 h1"},
		{"no environment", nil, "-genvnone -n 3 -hosts h2:2,h1", "h2 h2 h1"},
		{"an allocation", slurm, "-v", "h1 h1 h2"},
		{"an allocation without its environment", slurm, "-genvnone -n 5", "h1 h1 h2 h1 h1"},
		{"this machine alone", slurm, "-localonly -n 2", "ctl ctl"},
		{"other hosts than the allocation's", slurm, "-n 1 -H h2", "h2"},
	} {
		code, out, errs := does(t, test.env, append(strings.Fields(test.words), "sh", "-c", "echo $RANK $(hostname)")...)
		var want []string
		for rank, host := range strings.Fields(test.want) {
			want = append(want, string(rune('0'+rank))+" "+host)
		}
		if code != 0 || !slices.Equal(out, want) || (errs != "") != strings.Contains(test.words, "-v") {
			t.Errorf("%s: %d, %q, want %q\n%s", test.name, code, out, want, errs)
		}
	}
	for _, program := range farPrograms {
		t.Run(program.name, func(t *testing.T) {
			code, out, errs := does(t, nil, append([]string{"-hosts", "h1,h2", "-n", "4"}, program.command(t, bed, 1)...)...)
			want := []string{"rank 0 of 4: step 1/1", "rank 1 of 4: step 1/1", "rank 2 of 4: step 1/1", "rank 3 of 4: step 1/1"}
			if code != 0 || !slices.Equal(out, want) || strings.Contains(errs, "gangrun: ") {
				t.Errorf("%d, %q\n%s", code, out, errs)
			}
		})
	}

	for mpi, terminals := range map[job.MPI]string{job.MPIOpenMPI: "010", job.MPIMPICH: "000"} {
		t.Run("terminals of "+string(mpi), func(t *testing.T) {
			lines := farProgram{mpi: mpi, source: linesSource}.command(t, bed, 1)[0]
			code, out, errs := does(t, nil, "-hosts", "h1,h2", "-n", "4", "-s", "none", lines, "end")
			if code != 0 || len(out) != 400 || errs != strings.Repeat("terminals: "+terminals+"\n", 4) {
				t.Errorf("%d, %d lines, want 0 and 400, and terminals %s\n%s", code, len(out), terminals, errs)
			}
		})
	}

	if err := bed.Host(2).StopSSH(); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := does(t, nil, "-hosts", "h1,h2", "-n", "1", "echo", "here"); code != 0 || out[0] != "here" || errs != "" {
		t.Errorf("where the host that is not reached has no turn: %d, %q\n%s", code, out, errs)
	}
	code, _, errs := does(t, nil, "-hosts", "h1,h2", "-n", "2", "true")
	if code != 69 || !strings.Contains(errs, `gangrun: error: host "h2" cannot be used; not reached: `) || !strings.Contains(errs, "\ngangrun: hint: start sshd there") || strings.Count(errs, "\n") != 3 {
		t.Errorf("where it has one: %d\n%s", code, errs)
	}
}
