package main_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// hangSource is an MPI program in which a rank hangs.
const hangSource = "testdata/hangs/hang.c"

// evenSource is an MPI program whose ranks all do the same work.
const evenSource = "testdata/stragglers/even.c"

// mpiFlavours are the MPI libraries for which the tests build programs.
var mpiFlavours = []job.MPI{job.MPIMPICH, job.MPIOpenMPI}

// mpiPrograms has a function for each C program of the tests and each MPI library. The function builds the program
// once and returns its path. The program is in the directory of the tested gangrun.
var mpiPrograms = func() map[string]func() (string, error) {
	programs := map[string]func() (string, error){}
	for _, source := range []string{"testdata/mpi/fail.c", "testdata/mpi/speak.c", linesSource, hangSource, beatsSource, evenSource, trainSource, "../../examples/ring/ring.c", "../../examples/steady/steady.c"} {
		for _, flavour := range mpiFlavours {
			programs[source+string(flavour)] = sync.OnceValues(func() (string, error) {
				gangrun, err := binary()
				if err != nil {
					return "", err
				}
				name := strings.TrimSuffix(filepath.Base(source), ".c")
				path := filepath.Join(filepath.Dir(gangrun), name+"."+string(flavour))
				compile := exec.Command("mpicc."+string(flavour), "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o", path, source)
				if out, err := compile.CombinedOutput(); err != nil {
					return "", fmt.Errorf("%s: %w\n%s", compile, err, out)
				}
				return path, nil
			})
		}
	}
	return programs
}()

// mpiProgram returns the path of a program that is built for an MPI library. It skips the test if the library is
// missing.
func mpiProgram(t *testing.T, source string, flavour job.MPI) string {
	t.Helper()
	path, err := mpiPrograms[source+string(flavour)]()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		noskip.Skip(t, "%v", err)
	case err != nil:
		t.Fatal(err)
	}
	return path
}

// failProgram returns the path of the program in which a rank fails or hangs.
func failProgram(t *testing.T, flavour job.MPI) string {
	return mpiProgram(t, "testdata/mpi/fail.c", flavour)
}

const sharedDir = "/dev/shm/"

// shared returns the names of the entries of /dev/shm that this user owns.
func shared(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(sharedDir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Lstat(sharedDir+e.Name(), &st) == nil && int(st.Uid) == os.Getuid() {
			names[e.Name()] = true
		}
	}
	return names
}

// deleteUsed deletes the names of the entries of /dev/shm that a process uses. A process uses an entry if it has
// mapped or opened the entry, or has its working directory there.
func deleteUsed(names map[string]bool) {
	use := func(path string) {
		if below, ok := strings.CutPrefix(path, sharedDir); ok {
			name, _, _ := strings.Cut(below, "/")
			delete(names, name)
		}
	}
	for _, pid := range procfs.PIDs() {
		data, _ := os.ReadFile(proc(pid, "maps")) // the process may have ended
		for line := range strings.Lines(string(data)) {
			if i := strings.Index(line, sharedDir); i >= 0 {
				use(strings.TrimSpace(line[i:]))
			}
		}
		links, _ := filepath.Glob(proc(pid, "fd/*"))
		for _, link := range append(links, proc(pid, "cwd")) {
			if target, err := os.Readlink(link); err == nil {
				use(target)
			}
		}
	}
}

// sharesNothing fails the test if, after the test, there are new entries in /dev/shm that no process uses. It waits
// for a while, because gangs of other tests may not have removed theirs yet. It ignores entries of benchmarks, whose
// names begin with "gangrun-", but not with the prefix that agents use.
func sharesNothing(t *testing.T) {
	t.Helper()
	before, agents := shared(t), fmt.Sprintf("gangrun-%d-", os.Getuid())
	t.Cleanup(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		left := shared(t)
		for deadline := time.Now().Add(patience); ; <-tick.C {
			now := shared(t)
			maps.DeleteFunc(left, func(name string, _ bool) bool {
				return before[name] || !now[name] || strings.HasPrefix(name, "gangrun-") && !strings.HasPrefix(name, agents)
			})
			if len(left) > 0 { // to look at all processes takes long
				deleteUsed(left)
			}
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("left in /dev/shm: %q", slices.Collect(maps.Keys(left)))
				return
			}
		}
	})
}

// mpiRow is a way in which a rank fails or hangs, with the consequences for the run.
type mpiRow struct {
	mode string // the first argument of testdata/mpi/fail.c
	code int    // the exit code of gangrun; notZero stands for any code but 0
	// category is the category of the cause; empty if the run succeeds. The cause must have one of the signatures.
	category   job.Category
	signatures []string
	blamed     bool    // whether the cause names the rank
	flavour    job.MPI // the MPI library to which the row applies; empty means every library
}

const notZero = -1

// mpiRows has a row for each mode of fail.c. Some rows allow several signatures. They depend on whether the MPI
// library prints a stack trace before a signal ends the rank.
var mpiRows = []mpiRow{
	{mode: "segv", code: 139, category: job.InvalidMemoryAccess, signatures: []string{"sigsegv", "segfault-trace", "kernel-segfault"}, blamed: true},
	{mode: "stackoverflow", code: 139, category: job.InvalidMemoryAccess, signatures: []string{"sigsegv", "segfault-trace", "kernel-segfault"}, blamed: true},
	{mode: "sigkill", code: 137, category: job.Killed, signatures: []string{"sigkill"}, blamed: true},
	{mode: "abort", code: 134, category: job.CoreDump, signatures: []string{"sigabrt", "cpp-terminate"}, blamed: true},
	{mode: "fpe", code: 136, category: job.CoreDump, signatures: []string{"sigfpe"}, blamed: true},
	{mode: "exit3", code: 3, category: job.Unknown, signatures: []string{"exit-code"}, blamed: true},
	{mode: "exit0-nofinalize", code: 1, category: job.MPIError, signatures: []string{"mpi-no-finalize"}, blamed: true},
	{mode: "mpiabort7", code: 7, category: job.MPIError, signatures: []string{"mpi-abort"}, blamed: true},
	{mode: "mpiabort256", code: 255, category: job.MPIError, signatures: []string{"mpi-abort"}, blamed: true},
	{mode: "exit5-preinit", code: 5, category: job.Unknown, signatures: []string{"exit-code"}, blamed: true},
	{mode: "exit0-preinit", code: 1, category: job.MPIError, signatures: []string{"zero-exit", "mpi-no-init"}, blamed: true},
	{mode: "sigstop", code: 124, category: job.TimeLimit, signatures: []string{"time-limit"}},
	{mode: "hang-preinit", code: 124, category: job.TimeLimit, signatures: []string{"time-limit"}},
	{mode: "hang-barrier", code: 124, category: job.TimeLimit, signatures: []string{"time-limit"}},
	{mode: "exit42-postfinalize", code: 42, category: job.Unknown, signatures: []string{"exit-code"}, blamed: true},
	{mode: "truncate", code: notZero, category: job.MPIError, signatures: []string{"mpi-truncate"}, blamed: true, flavour: job.MPIMPICH},
	{mode: "truncate", code: 15, category: job.MPIError, signatures: []string{"mpi-truncate"}, blamed: true, flavour: job.MPIOpenMPI},
	{mode: "fork-child"},
	{mode: "setsid-child"},
}

// The gangs of the matrix and of the signal tests have mpiRanks ranks. When gangrun ends such a gang, the ranks have
// the time mpiGrace.
const (
	mpiRanks = 4
	mpiGrace = time.Second
)

// mpiLimit is the time limit of gangs that hang. Every rank gets to the point where the gang hangs before this limit,
// even if the machine is very slow for a while.
const mpiLimit = 8 * time.Second

// startMPI starts a gang of fail.c. The arguments of the program are in fail.
func startMPI(t *testing.T, flavour job.MPI, ranks, hosts int, fail []string, options ...string) *controlled {
	t.Helper()
	args := append([]string{"--mpi", string(flavour), "--preflight", "off", "--retries", "0", "--grace", mpiGrace.String(),
		"--loopback", strconv.Itoa(hosts), "-n", strconv.Itoa(ranks)}, options...)
	return newBench(t).start(nil, append(append(args, "--", failProgram(t, flavour)), fail...)...)
}

// gone checks that an ended gangrun has left nothing on this machine except the run in its home.
func (r *controlled) gone() {
	r.t.Helper()
	for range 2 { // marked may miss a process that is being executed
		if left := r.marked(); len(left[ownMark])+len(left[jobMark]) > 0 {
			r.t.Errorf("left when gangrun had ended: %v", left)
			break
		}
	}
	left := r.leftovers()
	entries, err := os.ReadDir(filepath.Join(r.dir, "tmp"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != fmt.Sprintf("gangrun-%d", os.Getuid()) { // all runs of a user share this directory
			left = append(left, e.Name())
		}
	}
	if len(left) > 0 {
		r.t.Errorf("left behind: %q", left)
	}
	if said := r.file("stderr"); strings.Contains(said, "panic:") || strings.Contains(said, "fatal error:") {
		r.t.Error("gangrun panicked")
	}
}

// report returns the report of the only run.
func (b *bench) report() (report runreport.Report) {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.dir, "home/runs/*/report.json"))
	if err != nil || len(paths) != 1 {
		b.t.Fatalf("reports %q, %v, want one", paths, err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		b.t.Fatal(err)
	}
	decode(b.t, data, &report)
	return report
}

// check runs a gang in which the rank bad misbehaves, and compares the consequences with the row.
func (row mpiRow) check(t *testing.T, flavour job.MPI, hosts, bad int) {
	var options []string
	if row.category == job.TimeLimit {
		options = []string{"--timeout", mpiLimit.String()}
	}
	fail := []string{row.mode, strconv.Itoa(bad)}
	if row.mode == "sigkill" {
		// All ranks pass a barrier first. Without the barrier, another rank might still be in MPI_Init when the bad
		// rank ends. That other rank could then call MPI_Abort and end before the kernel reports the end of the bad
		// rank.
		fail = append(fail, "1")
	}
	r := startMPI(t, flavour, mpiRanks, hosts, fail, options...)
	code := r.finish()
	r.gone()
	if code != row.code && (row.code != notZero || code == 0) {
		t.Errorf("exit code %d, want %d", code, row.code)
	}
	report := r.report()
	if report.ExitCode == nil || *report.ExitCode != code || len(report.Attempts) != 1 {
		t.Fatalf("gangrun exited with %d, its report tells %v after %d attempts", code, report.ExitCode, len(report.Attempts))
	}
	attempt := report.Attempts[0]
	if len(attempt.Exits) != mpiRanks || len(attempt.Unreaped) > 0 {
		t.Errorf("%d ranks ended and %v were not reaped, want %d and none: %v", len(attempt.Exits), attempt.Unreaped, mpiRanks, attempt.Exits)
	}
	if row.category == "" {
		if report.State != job.StateSucceeded || attempt.Cause != nil {
			t.Errorf("state %s with cause %+v, want success", report.State, attempt.Cause)
		}
		return
	}
	rank := -1
	if row.blamed {
		rank = bad
	}
	switch c := attempt.Cause; {
	case report.State != job.StateFailed || c == nil:
		t.Errorf("state %s with cause %+v, want a failure", report.State, c)
	case c.Category != row.category || !slices.Contains(row.signatures, c.Signature) || c.Rank != rank:
		t.Errorf("cause %s/%s of rank %d (%s), want %s/%s of rank %d", c.Category, c.Signature, c.Rank, c.Text, row.category, strings.Join(row.signatures, "|"), rank)
	}
	var first, last time.Time
	for _, e := range attempt.Exits {
		if first.IsZero() || e.Time.Before(first) {
			first = e.Time
		}
		if e.Time.After(last) {
			last = e.Time
		}
	}
	if took := last.Sub(first); took > mpiGrace+goneLimit {
		t.Errorf("the last rank was gone %s after the first", took)
	}
}

// mpiMatrix tries every row, with each MPI library, in gangs on one and on two simulated hosts. In each gang, one of
// the ranks in bad misbehaves. If slice is true, it tries each row on only one of the two numbers of hosts.
func mpiMatrix(t *testing.T, slice bool, bad ...int) {
	sharesNothing(t)
	for f, flavour := range mpiFlavours {
		failProgram(t, flavour) // build the program before the time of the first gang starts
		for _, hosts := range []int{1, 2} {
			for _, rank := range bad {
				for i, row := range mpiRows {
					if row.flavour != "" && row.flavour != flavour || slice && (f+i)%2 != hosts%2 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/%s/%d", flavour, hosts, row.mode, rank), func(t *testing.T) {
						t.Parallel()
						row.check(t, flavour, hosts, rank)
					})
				}
			}
		}
	}
}

// TestMPIMatrix tries every mode of fail.c. gangrun must report the right cause and rank, exit with the right code,
// and leave nothing.
func TestMPIMatrix(t *testing.T) {
	t.Parallel()
	mpiMatrix(t, true, 2)
}

// mpiSignals sends each of several signals to gangrun while a gang hangs in each of the modes.
func mpiSignals(t *testing.T, modes ...string) {
	sharesNothing(t)
	for _, flavour := range mpiFlavours {
		failProgram(t, flavour)
		for _, hosts := range []int{1, 2} {
			for _, mode := range modes {
				for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGKILL} {
					t.Run(fmt.Sprintf("%s/%d/%s/%s", flavour, hosts, mode, unix.SignalName(sig)), func(t *testing.T) {
						t.Parallel()
						signalled(t, flavour, hosts, mode, sig)
					})
				}
			}
		}
	}
}

// signalled sends a signal to gangrun when its gang hangs, and checks the end of the run.
func signalled(t *testing.T, flavour job.MPI, hosts int, mode string, sig unix.Signal) {
	r := startMPI(t, flavour, mpiRanks, hosts, []string{mode, "2"})
	if mode == "hang-barrier" {
		r.await("every rank in MPI", func() bool { return r.waits() })
	} else {
		r.await("the start of every rank", func() bool {
			started := slices.DeleteFunc(r.events(), func(e job.Event) bool { return e.Kind != job.KindStarted })
			return len(started) == mpiRanks
		})
	}
	r.tree() // records the PIDs of the agents, so that leftovers can find their control groups
	struck := time.Now()
	if !r.strike(r.cmd.Process.Pid, sig) {
		t.Fatal("gangrun is gone")
	}
	r.vanish(struck)
	if sig == unix.SIGKILL {
		list := r.list()
		if len(list) != 1 || list[0].State != job.StateLost {
			t.Fatalf("gangrun ps tells %+v, want a lost run", list)
		}
		if hosts, err := filepath.Glob(filepath.Join(r.dir, "tmp/*/*/*")); err != nil || len(hosts) > 0 {
			t.Errorf("the agents have left their hosts' temporary directories %q, %v", hosts, err)
		}
		r.ask("clean", list[0].Run)
		r.gone()
		return
	}
	r.gone()
	if code := r.cmd.ProcessState.ExitCode(); code != 128+int(sig) {
		t.Errorf("exit code %d, want %d", code, 128+int(sig))
	}
	report := r.report()
	if c := report.Cause(); report.State != job.StateCancelled || c == nil || c.Category != job.Cancelled {
		t.Errorf("state %s with cause %+v, want a cancelled run", report.State, c)
	}
}

// TestMPISignals sends signals to gangrun while its ranks wait in a barrier.
func TestMPISignals(t *testing.T) {
	t.Parallel()
	mpiSignals(t, "hang-barrier")
}
