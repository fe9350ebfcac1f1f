package main_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// oddProgram writes its arguments, its directory and some variables to a file whose name has the attempt and the rank.
// Then it executes the program that MPIPROG names. If WAIT is set, the first attempt waits until it is ended.
const oddProgram = `#!/usr/bin/python3
import os, signal, sys
have = [os.fsencode(a) for a in sys.argv] + [os.getcwdb()]
have += [os.environb.get(n, b"unset") for n in (b"ODD", b"INHERITED\xe8", b"GANGRUN_CHECKPOINT_DIR", b"TMPDIR")]
attempt = os.environ["GANGRUN_ATTEMPT"]
path = os.environb[b"RESULTS"] + b"/%s.%s" % (attempt.encode(), os.environb[b"RANK"])
with open(path + b".part", "wb") as f:
    f.write(b"\0".join(have))
os.rename(path + b".part", path)
if attempt == "1" and "WAIT" in os.environ:
    signal.pause()
if "MPIPROG" in os.environ:
    os.execv(os.environ["MPIPROG"], [os.environ["MPIPROG"], "1", "0"])
`

// odd is a job whose paths, arguments and variables have bytes that are not UTF-8.
type odd struct {
	dir     string // the directory of the files of the job; its own path is ASCII
	program string
	args    []string
	env     []string // additional environment of gangrun
	want    []string // what the program must write to its file, without TMPDIR
}

func newOdd(t *testing.T, dir string) odd {
	t.Helper()
	work := filepath.Join(dir, "w\xff rk")
	for _, d := range []string{filepath.Join(dir, "results"), work, filepath.Join(dir, "tm\xc3")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o := odd{dir: dir, program: filepath.Join(dir, "pr\xe9g")}
	writeProgram(t, o.program, []byte(oddProgram))
	saved := filepath.Join(dir, "ck\xfe")
	o.args = []string{"-n", "2", "-e", "ODD=v\xff\xc3", "-e", "RESULTS=" + filepath.Join(dir, "results"),
		"--workdir", work, "--checkpoint-dir", saved, "--", o.program, "a\xffb", "{{.CheckpointDir}}/\xe9", "\ufffd plain"}
	o.env = []string{"GANGRUN_HOME=" + filepath.Join(dir, "h\xe9me"), "TMPDIR=" + filepath.Join(dir, "tm\xc3"), "INHERITED\xe8=\xfe"}
	o.want = []string{o.program, "a\xffb", saved + "/\xe9", "\ufffd plain", work, "v\xff\xc3", "\xfe", saved}
	return o
}

// found checks what the ranks of an attempt have written.
func (o odd) found(t *testing.T, attempt string) {
	t.Helper()
	for _, rank := range []string{"0", "1"} {
		data, err := os.ReadFile(filepath.Join(o.dir, "results", attempt+"."+rank))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := strings.Split(string(data), "\x00"); !slices.Equal(got[:len(got)-1], o.want) {
			t.Errorf("rank %s of attempt %s found\n%q, want\n%q", rank, attempt, got[:len(got)-1], o.want)
		}
	}
}

// await waits until both ranks of an attempt have written their files.
func (o odd) await(t *testing.T, attempt string) {
	t.Helper()
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, err0 := os.Stat(filepath.Join(o.dir, "results", attempt+".0"))
		_, err1 := os.Stat(filepath.Join(o.dir, "results", attempt+".1"))
		if err0 == nil && err1 == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the ranks of attempt %s told nothing within %s", attempt, patience)
		}
	}
}

// TestBytes checks that ranks get bytes that are not UTF-8 as the user has given them. It tries every MPI library and
// every kind of local host, and the trial, too.
func TestBytes(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	for _, c := range []struct {
		name  string
		mpi   job.MPI
		flags []string
	}{
		{"none", job.MPINone, nil},
		{"none, simulated hosts", job.MPINone, []string{"--loopback", "2"}},
		{"mpich, simulated hosts", job.MPIMPICH, []string{"--loopback", "2"}},
		{"openmpi", job.MPIOpenMPI, nil},
		{"openmpi, simulated hosts", job.MPIOpenMPI, []string{"--loopback", "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			o := newOdd(t, b.dir)
			flags := append([]string{"run", "--retries", "0", "--mpi", string(c.mpi)}, c.flags...)
			if c.mpi != job.MPINone {
				flags = append(flags, "-e", "MPIPROG="+mpiProgram(t, "../../examples/steady/steady.c", c.mpi))
			}
			cmd := b.command(append(flags, o.args...)...)
			cmd.Env = append(cmd.Env, o.env...)
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			o.found(t, "1")
			if data, err := os.ReadFile(filepath.Join(b.dir, "results", "0.0")); !errors.Is(err, fs.ErrNotExist) {
				// The trial is contained, so its file must not exist.
				t.Errorf("the trial's file is there, %v: %q", err, data)
			}
		})
	}
}

// TestBytesUncontained checks that the ranks of an uncontained trial get the same bytes.
func TestBytesUncontained(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := newOdd(t, b.dir)
	cmd := b.command(append([]string{"run", "--retries", "0", "--mpi", "none", "--trial", "uncontained", "--trial-ranks", "2"}, o.args...)...)
	cmd.Env = append(cmd.Env, o.env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	o.found(t, "1")
	trial := o
	trial.want = slices.Clone(o.want)
	data, err := os.ReadFile(filepath.Join(b.dir, "results", "0.0"))
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Split(string(data), "\x00")[7] // the checkpoint directory of the trial, which is not that of the job
	trial.want[2], trial.want[7] = own+"/\xe9", own
	if !strings.Contains(own, "h\xe9me") {
		t.Errorf("the trial's checkpoint directory %q is not below the run's home", own)
	}
	trial.found(t, "0")
}

// TestBytesAfterAttach checks that gangrun attach starts ranks with the same bytes. It knows them only from the
// directory of the run.
func TestBytesAfterAttach(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := newOdd(t, b.dir)
	run := func(args ...string) ([]byte, error) {
		cmd := b.command(args...)
		cmd.Env = append(append(cmd.Env, o.env...), "WAIT=1")
		return cmd.Output()
	}
	if out, err := run(append([]string{"run", "--detach", "--retries", "1", "--preflight", "off", "--mpi", "none"}, o.args...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	o.await(t, "1")
	o.found(t, "1")
	out, err := run("status", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var s status
	decode(t, out, &s)
	if want := "a\x00ffb"; len(s.Command) != 4 || s.Command[1] != want {
		t.Errorf("status tells the command %q, want %q as its second word", s.Command, want)
	}
	if err := syscall.Kill(s.Controller.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if out, err := run("attach"); err != nil {
		said := (*exec.ExitError)(nil)
		errors.As(err, &said)
		t.Fatalf("%v\n%s", err, bytes.Join([][]byte{out, said.Stderr}, nil))
	}
	o.found(t, "2")
}

// TestHostBytes checks the same on hosts that are reached by SSH, with a trial.
func TestHostBytes(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	o := newOdd(t, bed.Shared())
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &farRun{t: t, bed: bed, gangrun: gangrun}
	words := append([]string{"env"}, o.env[2:]...)
	cmd := bed.Controller().Command(t.Context(), append(append(words, gangrun, "run", "--hosts", "h1:1,h2:1", "--retries", "0", "--mpi", "none", "--trial", "uncontained"), o.args...)...)
	cmd.Dir = bed.Shared()
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	o.found(t, "1")
	if data, err := os.ReadFile(filepath.Join(o.dir, "results", "0.0")); err != nil || !bytes.Contains(data, []byte("\x00a\xffb\x00")) {
		t.Errorf("the trial found %q, %v", data, err)
	}
	r.nothingLeft()
}
