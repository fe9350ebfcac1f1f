package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// wrapped writes a shell script in which the function fail runs an Open MPI program. From outside, gangrun cannot see
// that. It returns the path of the script.
func wrapped(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wrapper")
	text := "#!/bin/sh\nfail() { \"" + failProgram(t, job.MPIOpenMPI) + "\" \"$@\"; }\n" + script + "\n"
	writeProgram(t, path, []byte(text))
	return path
}

// unsession removes the directories in TMPDIR that Open MPI leaves when a singleton is killed. They belong to the
// program, and gangrun does not know of them.
func unsession(t *testing.T, r *controlled) {
	t.Helper()
	sessions, err := filepath.Glob(filepath.Join(r.dir, "tmp", "ompi.*"))
	if err != nil || len(sessions) == 0 {
		t.Errorf("session directories %q, %v, want those of the singletons", sessions, err)
	}
	for _, dir := range sessions {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// singletonScript runs an MPI program as a singleton, which stops itself. On a busy machine, Open MPI sometimes cannot
// start the daemon of a singleton, and MPI_Init fails. The script then runs the program again, but not if a signal has
// ended the program.
const singletonScript = `for try in 1 2 3 4 5; do fail sigstop 0; [ $? -ge 128 ] && break; done`

// TestMPISingletons checks that gangrun notices ranks that each run as rank 0 of 1, and ends the gang. Otherwise each
// rank would do the whole work.
func TestMPISingletons(t *testing.T) {
	sharesNothing(t)
	for _, flavour := range []string{"auto", "mpich"} {
		t.Run(flavour, func(t *testing.T) {
			r := newBench(t).start(nil, "--mpi", flavour, "--preflight", "off", "--grace", "1s", "-n", "2", "--", wrapped(t, singletonScript))
			code := r.finish()
			unsession(t, r)
			r.gone()
			report := r.report()
			if code != 1 || len(report.Attempts) != 1 {
				t.Errorf("exit code %d after %d attempts, want 1 after one", code, len(report.Attempts))
			}
			if c := report.Cause(); c == nil || c.Category != job.MPIError || c.Signature != "mpi-singleton" ||
				!strings.Contains(c.Text, "libmpi.so.40") || !strings.Contains(c.Hint, "--mpi") {
				t.Errorf("cause %+v, want the library and what to type", c)
			}
		})
	}
}

// TestMPITrialTells checks that gangrun starts the gang for the MPI library that the rank of the trial was seen to
// use.
func TestMPITrialTells(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	b := newBench(t)
	// The rank of the trial goes on when SIGUSR1 tells it that gangrun has seen the library.
	path := wrapped(t, `if [ "$WORLD_SIZE" = 1 ]; then trap "seen=1" USR1; fail sigstop 0 & while [ -z "$seen" ]; do sleep 0.02; done; echo "step 1/1"; wait; else fail hello; fi`)
	if err := os.WriteFile(filepath.Join(b.dir, "job.yaml"), []byte("command: ["+path+"]\nranks: 2\ngrace: 1s\ntrial: {steps: 1, time: 10m}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	attempts := func(r *controlled) {
		t.Helper()
		if code := r.finish(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		attempt := r.report().Last()
		for rank, want := range []string{"rank 0 of 2\n", "rank 1 of 2\n"} {
			if got := said(t, attempt, rank); got != want {
				t.Errorf("rank %d said %q, want %q", rank, got, want)
			}
		}
	}
	r := b.start(nil, "job.yaml")
	r.journalled("the library of the trial's rank", func(e job.Event) bool { return e.Kind == job.KindWireup && e.Wireup.Library != "" })
	if err := syscall.Kill(r.started(0, 0), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	attempts(r)
	r.gone()

	// The next run must not repeat the trial, but must know its result.
	if err := os.RemoveAll(filepath.Join(b.dir, "home", "runs")); err != nil {
		t.Fatal(err)
	}
	r = b.start(nil, "job.yaml")
	attempts(r)
	r.gone()
	if slices.ContainsFunc(r.events(), func(e job.Event) bool { return e.Kind == job.KindStarted && e.Attempt == 0 }) {
		t.Error("the trial was repeated")
	}
}
