package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

// slurmBed is a Slurm cluster whose user bob can use gangrun. bob cannot log in to any node over SSH.
type slurmBed struct {
	*slurm.Cluster
	t    *testing.T
	bed  *testhosts.Bed
	dir  string // a directory of bob that all nodes share
	mark string // is in the environment of the jobs
}

func newSlurmBed(t *testing.T, nodes int, options ...slurm.Option) *slurmBed {
	t.Helper()
	slurm.Need(t)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	bed := testhosts.Up(t, nodes)
	b := &slurmBed{Cluster: slurm.Up(t, bed, options...), t: t, bed: bed, mark: ownMark + "=slurm"}
	b.dir = b.Dir("bob")
	b.put("gangrun", gangrun)
	return b
}

// part returns a slurmBed for a subtest that runs in parallel with others. It has its own directory and marker.
func (b *slurmBed) part(t *testing.T) *slurmBed {
	t.Helper()
	p := *b
	p.t, p.mark = t, b.mark+"-"+path.Base(t.Name())
	p.dir = filepath.Join(b.dir, path.Base(t.Name()))
	p.makeDir(".")
	return &p
}

// makeDir makes a directory for bob.
func (b *slurmBed) makeDir(name string) {
	b.t.Helper()
	home, err := os.Stat(b.Dir("bob"))
	if err != nil {
		b.t.Fatal(err)
	}
	bob := int(home.Sys().(*syscall.Stat_t).Uid)
	dir := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, bob, bob)); err != nil {
		b.t.Fatal(err)
	}
}

// put copies a program into bob's directory.
func (b *slurmBed) put(name, source string) {
	b.t.Helper()
	data, err := os.ReadFile(source)
	if err != nil {
		b.t.Fatal(err)
	}
	writeProgram(b.t, filepath.Join(b.dir, name), data)
}

// submit submits a script as bob, in bob's directory. It returns the ID of the job.
func (b *slurmBed) submit(script string, flags ...string) (id string) {
	b.t.Helper()
	id, err := b.Submit("bob", "#!/bin/bash\ncd "+b.dir+"\nexport GANGRUN_HOME=$PWD/runs PATH=$PWD:$HOME:$PATH "+b.mark+"\n"+script, flags...)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// ended waits for the end of a job. It returns the job and its output.
func (b *slurmBed) ended(id string) (slurm.Job, string) {
	b.t.Helper()
	j, err := b.Await(id, 2*time.Minute, slurm.Job.Ended)
	out, _ := os.ReadFile(b.Output("bob", id))
	if err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return j, string(out)
}

// nothingLeft checks that no process of bob's jobs is left on any node.
func (b *slurmBed) nothingLeft() {
	b.t.Helper()
	b.left()
}

// TestSlurm runs gangs on all nodes of a job, as a user who cannot log in to the nodes.
func TestSlurm(t *testing.T) {
	t.Parallel()
	b := newSlurmBed(t, 4, slurm.GPUs(slurmGPUs))
	for _, program := range farPrograms {
		t.Run(string(program.mpi), func(t *testing.T) {
			command := program.command(t, b.bed, 3)
			id := b.submit("gangrun run -n 8 --output all --mpi "+string(program.mpi)+" -- "+strings.Join(command, " ")+" && hostname", "-N4")
			j, out := b.ended(id)
			if j.State() != "COMPLETED" {
				t.Fatalf("%s: %s", j.State(), out)
			}
			for rank := range 8 {
				host := "h" + string(rune('1'+rank/2))
				if want := "[" + string(rune('0'+rank)) + " " + host + "]  rank " + string(rune('0'+rank)) + " of 8: step 3/3\n"; !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
			b.ending("`-N4`, `-n 8`, `--mpi "+string(program.mpi)+"`", "two ranks on each node", "0")
		})
	}
	t.Run("mistakes", func(t *testing.T) {
		other := b.submit("true")
		b.ended(other)
		for _, c := range []struct {
			ending, script, want string
			flags                []string
		}{
			{"`srun -n 4 gangrun run`", "srun -n 4 gangrun run -n 4 -- true", "srun has started gangrun 4 times", []string{"-N4", "-n4"}},
			{"`gangrun run --detach` in a script", "gangrun run -n 4 --detach -- true", "--detach in job ", []string{"-N4", "-n4"}},
			{"`gangrun run` in a heterogeneous job", "gangrun run -n 2 -- true", "2 components", []string{"-n1", ":", "-n1"}},
			{"`SLURM_JOB_ID` of a job that has ended", "SLURM_JOB_ID=" + other + " gangrun run -n 1 -- true", "SLURM_JOB_ID says", []string{"-N1"}},
		} {
			j, out := b.ended(b.submit(c.script, c.flags...))
			if j["ExitCode"] != "64:0" || !strings.Contains(out, c.want) {
				t.Errorf("%s: %s, %q", c.ending, j["ExitCode"], out)
			}
			b.ending(c.ending, b.said(out, "gangrun: error: .*"), "64")
		}
	})
	slurmExamples(t, b)
	t.Run("digits", func(t *testing.T) {
		t.Parallel()
		slurmDigits(b.part(t))
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		b := b.part(t)
		id := b.submit("gangrun run -n 8 --preflight off -- sleep 600\necho a trailing line", "-N4")
		if _, err := b.Await(id, patience, func(slurm.Job) bool {
			found, err := b.Left(b.mark + "\x00")
			return err == nil && slices.ContainsFunc(found, func(p testhosts.Process) bool {
				return slices.Contains(p.Args, "600") && !slices.Contains(p.Args, "run")
			})
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Exec(t.Context(), "bob", "scancel", id); err != nil {
			t.Fatal(err)
		}
		j, out := b.ended(id)
		if j.State() != "CANCELLED" {
			t.Errorf("%s: %s", j.State(), out)
		}
		list, err := b.Exec(t.Context(), "bob", "env", "GANGRUN_HOME="+b.dir+"/runs", filepath.Join(b.Dir("bob"), "gangrun"), "ps")
		if err != nil || !strings.Contains(list, "  lost  ") {
			t.Errorf("%v\n%s", err, list)
		}
		b.ending("`scancel`, if `gangrun run` is not the last line of the script", "`lost`; `gangrun ps`: "+b.said(list, `Slurm shows job \d+ as \w+`), "killed")
	})
}

// TestSlurmMemory checks that gangrun names a rank on another node that exceeds the memory of its job. The test does
// not run in parallel with others, because gangs of other tests would see the record in the log of the kernel.
func TestSlurmMemory(t *testing.T) {
	b := newSlurmBed(t, 2)
	id := b.submit(`gangrun run -n 4 --preflight off -o json -- bash -c 'if [[ $RANK = 2 ]]; then exec python3 -c "x = bytearray(900 << 20)
while True: pass"; fi; exec sleep 60' > out.json`, "-N2", "--mem=200")
	_, out := b.ended(id)
	data, err := os.ReadFile(filepath.Join(b.dir, "out.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report slurmReport
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatalf("%v: %s\n%s", err, data, out)
	}
	if len(report.Attempts) == 0 || report.Attempts[0].Cause == nil || report.Attempts[0].Cause.Category != job.CPUOOM || report.Attempts[0].Cause.Rank != 2 {
		t.Fatalf("the cause is %s\n%s", data, out)
	}
	b.ending("a rank on another node exceeds the memory of the job", report.said(), report.code())
}
