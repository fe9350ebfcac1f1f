package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// linesSource is a program that says which of its streams are terminals.
const linesSource = "testdata/mpi/lines.c"

// unflushed is what the ranks of lines.c print without flushing.
var unflushed = func() string {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	return text.String()
}()

// TestMPITerminals checks that the logs have what ranks have printed before they are killed, flushed or not, if the
// standard output of the ranks is a terminal. By default, only ranks of Open MPI have a terminal.
func TestMPITerminals(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	for _, c := range []struct {
		flavour  job.MPI // the MPI library for which the program is built
		mpi      job.MPI
		tty      string
		mode     string
		terminal bool
	}{
		{job.MPIOpenMPI, job.MPIAuto, "auto", "mpi", true},
		{job.MPIOpenMPI, job.MPIOpenMPI, "on", "mpi", true},
		{job.MPIOpenMPI, job.MPIOpenMPI, "off", "mpi", false},
		{job.MPIMPICH, job.MPIAuto, "auto", "mpi", false},
		{job.MPIMPICH, job.MPIMPICH, "on", "mpi", true},
		{job.MPIMPICH, job.MPINone, "auto", "plain", false},
		{job.MPIMPICH, job.MPINone, "off", "plain", false},
		{job.MPIMPICH, job.MPINone, "on", "plain", true},
	} {
		program := mpiProgram(t, linesSource, c.flavour)
		for _, hosts := range []string{"0", "2"} {
			t.Run(fmt.Sprintf("%s --mpi %s --tty %s on %s", c.flavour, c.mpi, c.tty, hosts), func(t *testing.T) {
				t.Parallel()
				r := newBench(t).start(nil, "--preflight", "off", "--retries", "0", "--mpi", string(c.mpi), "--tty", c.tty,
					"--loopback", hosts, "-n", "4", "--", program, c.mode)
				if code := r.finish(); code != 137 {
					t.Errorf("exit code %d, want 137", code)
				}
				r.gone()
				attempt := r.report().Last()
				out, terminals := said(t, attempt, 1), "terminals: 000\n"
				if c.terminal {
					terminals = "terminals: 010\n"
				}
				if c.terminal && out != unflushed {
					t.Errorf("rank 1 has %d bytes in its log, want all %d", len(out), len(unflushed))
				}
				// MPICH's MPI_Init makes every standard output unbuffered.
				if !c.terminal && (c.mode == "plain" || c.flavour == job.MPIOpenMPI) && out != "" {
					t.Errorf("rank 1 has %q in its log, want nothing: it did not flush", out)
				}
				if errs := stderrOf(t, attempt.Logs, 1); !strings.HasPrefix(errs, terminals) {
					t.Errorf("rank 1 said %q, want %q", errs, terminals)
				}
			})
		}
	}
}

func stderrOf(t *testing.T, logs string, rank int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(logs, job.LogName(rank, "err")))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMPITerminalBytes checks that a log has exactly the bytes that the rank has written, with a terminal and without.
func TestMPITerminalBytes(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	want := make([]byte, 256)
	for b := range want {
		want[b] = byte(b)
	}
	want = append(want, "\n\r\n\n\r\t\x04\x03\x1a\x1c\x11\x13\x7f one\ttab\r\n"...)
	want = append(append(want, bytes.Repeat([]byte("x"), 1<<20)...), "\r\nno end"...)
	for _, flavour := range mpiFlavours {
		program := mpiProgram(t, linesSource, flavour)
		for _, tty := range []string{"on", "off"} {
			t.Run(string(flavour)+" "+tty, func(t *testing.T) {
				t.Parallel()
				r := newBench(t).start(nil, "--preflight", "off", "--tty", tty, "--loopback", "2", "-n", "4", "--", program, "bytes")
				if code := r.finish(); code != 0 {
					t.Fatalf("exit code %d", code)
				}
				r.gone()
				for rank := range 4 {
					if got := said(t, r.report().Last(), rank); got != string(want) {
						t.Errorf("the log of rank %d has %d bytes and is not the %d that it wrote", rank, len(got), len(want))
					}
				}
			})
		}
	}
}

// TestMPITerminalTrial checks that the ranks of a trial have a terminal if the ranks of the gang will have one.
func TestMPITerminalTrial(t *testing.T) {
	t.Parallel()
	program := mpiProgram(t, linesSource, job.MPIOpenMPI)
	for tty, want := range map[string]string{"auto": "terminals: 010\n", "off": "terminals: 000\n"} {
		t.Run(tty, func(t *testing.T) {
			t.Parallel()
			r := newBench(t).start(nil, "--tty", tty, "-n", "2", "--", program, "end")
			if code := r.finish(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			r.gone()
			logs := r.report().Last().Logs
			for _, dir := range []string{logs, filepath.Join(filepath.Dir(logs), "trial")} {
				if got := stderrOf(t, dir, 0); got != want {
					t.Errorf("in %s rank 0 said %q, want %q", filepath.Base(dir), got, want)
				}
			}
		})
	}
}

// TestMPINoTerminals checks that gangrun says once if a host cannot provide terminals. If the user has asked for
// terminals, this must be an error.
func TestMPINoTerminals(t *testing.T) {
	t.Parallel()
	program := mpiProgram(t, linesSource, job.MPIOpenMPI)
	const none = "/dev/ptmx has no devpts: mount it on /dev/pts"
	run := func(args ...string) (code int, errs string) {
		t.Helper()
		b := newBench(t)
		cmd := b.command(append([]string{"run", "--trial", "uncontained", "--loopback", "2", "-n", "4"}, args...)...)
		// Only gangrun sees the file system that hides the devpts. The trial of this gangrun cannot be contained.
		cmd.Args = append([]string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs none /dev/pts && exec "$0" "$@"`}, cmd.Args...)
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = path
		var said bytes.Buffer
		cmd.Stderr = &said
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), said.String()
	}
	code, errs := run("--", program, "end")
	if code != 0 || !strings.Contains(errs, "terminals: 000") || strings.Contains(errs, "terminals: 010") {
		t.Errorf("auto: exit code %d, want 0 without terminals:\n%s", code, errs)
	}
	if shown, _, _ := strings.Cut(errs, "\ngangrun: run  "); strings.Count(shown, none) != 1 {
		t.Errorf("auto: it is told %d times, want once for a trial and a gang on two hosts:\n%s", strings.Count(shown, none), shown)
	}
	if code, errs = run("--tty", "off", "--", program, "end"); code != 0 || strings.Contains(errs, none) {
		t.Errorf("off: exit code %d, want 0 and nothing told:\n%s", code, errs)
	}
	const why = "could not be started: there is no terminal for its standard output, which --tty on asks for: " + none + ", or leave out --tty on"
	if code, errs = run("--tty", "on", "--", "true"); code != 78 || !strings.Contains(errs, why) {
		t.Errorf("on, in the trial: exit code %d, want 78 and why:\n%s", code, errs)
	}
	if code, errs = run("--tty", "on", "--preflight", "off", "--", program, "end"); code != 70 || !strings.Contains(errs, why) {
		t.Errorf("on, in the gang: exit code %d, want 70 and why:\n%s", code, errs)
	}
}

// TestMpiexecTerminals checks that gangrun mpiexec gives ranks a terminal if mpirun would do so.
func TestMpiexecTerminals(t *testing.T) {
	t.Parallel()
	for flavour, want := range map[job.MPI]string{job.MPIOpenMPI: "terminals: 010\n", job.MPIMPICH: "terminals: 000\n"} {
		program := mpiProgram(t, linesSource, flavour)
		t.Run(string(flavour), func(t *testing.T) {
			t.Parallel()
			cmd := newBench(t).command("mpiexec", "-n", "2", program, "end")
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil || errs.String() != want+want || out.Len() != 2*len(unflushed) {
				t.Errorf("%v, %d bytes of output and %q; want %d and %q twice", err, out.Len(), errs.String(), 2*len(unflushed), want)
			}
		})
	}
}
