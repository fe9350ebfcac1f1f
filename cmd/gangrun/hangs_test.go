package main_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// hangTimeout is the --hang-timeout of the tests.
const hangTimeout = 4 * time.Second

// hangLate is how much longer than the limit gangrun may take to find a hang and to read the stacks. The machine may
// be busy.
const hangLate = 30 * time.Second

// The gangs of these tests have hangRanks ranks on hangHosts hosts.
const (
	hangRanks = 8
	hangHosts = 4
)

// aHang is a way in which a gang can hang.
type aHang struct {
	mode string
	what string // what happens, in words
	all  bool   // every rank hangs, and no rank is to blame
	mpi  bool   // only MPI programs can hang like this
	none bool   // only programs without MPI can hang like this
	// file returns the path of a file that a rank opens and reads. If it is nil, the file is a FIFO.
	file func(t *testing.T) string
}

var hangs = []aHang{
	{mode: "stop", what: "a rank is stopped (SIGSTOP)"},
	{mode: "loop", what: "a rank is in an endless loop"},
	{mode: "sleep", what: "a rank sleeps"},
	{mode: "mutex", what: "a rank waits for a lock that it holds itself"},
	{mode: "missing", what: "a rank is not in the collective call of the others"},
	{mode: "mismatch", what: "a rank is in another collective call", mpi: true},
	{mode: "fifo", what: "a rank opens a FIFO to which nobody writes"},
	{mode: "fifo", what: "a rank reads from a file system that does not answer (FUSE)", file: frozenFile},
	{mode: "kernel", what: "a rank waits in the kernel (state D)", mpi: true},
	{mode: "worker", what: "the process that feeds a rank with data has died"},
	{mode: "gil", what: "a rank holds Python's global interpreter lock", none: true},
	{mode: "init", what: "a rank does not call MPI_Init", mpi: true},
	{mode: "finalize", what: "a rank does not call MPI_Finalize", mpi: true},
	{mode: "silent", what: "all ranks sleep", all: true},
	{mode: "livelock", what: "all ranks are in an endless loop", all: true},
}

// in returns the MPI libraries with which a gang can hang in this way.
func (h aHang) in() []job.MPI {
	switch {
	case h.mpi:
		return mpiFlavours
	case h.none:
		return []job.MPI{job.MPINone}
	}
	return append(slices.Clone(mpiFlavours), job.MPINone)
}

// fifo returns the path of a FIFO to which nothing is written.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// foundHang is what gangrun has found out about a hanging gang.
type foundHang struct {
	report job.HangReport
	cause  job.Cause
	took   time.Duration // time from the last progress until gangrun found the hang
}

// run runs a gang in which a rank hangs, and returns what gangrun has found out.
func (h aHang) run(t *testing.T, flavour job.MPI, rank int) (f foundHang) {
	t.Helper()
	b := newBench(t)
	if h.file == nil {
		h.file = fifo
	}
	file := h.file(t)
	who := rank
	if h.all {
		who = -1
	}
	args := []string{"--output", "none", "--preflight", "off", "--retries", "0", "--grace", "1s", "--mpi", string(flavour), "--hang-timeout", hangTimeout.String(),
		"--loopback", strconv.Itoa(hangHosts), "-n", strconv.Itoa(hangRanks)}
	if flavour == job.MPINone {
		script, err := filepath.Abs("testdata/hangs/hang.py")
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--faulthandler", "--", "python3", script)
	} else {
		args = append(args, "--", mpiProgram(t, hangSource, flavour))
	}
	r := b.start(nil, append(args, h.mode, strconv.Itoa(who), file)...)
	if code := r.finish(); code == 0 {
		t.Error("exit code 0 of a gang that hangs")
	}
	var report runreport.Report
	decode(t, b.ask("report", "-o", "json"), &report)
	if cause := report.Cause(); cause != nil {
		f.cause = *cause
	}
	for _, e := range b.events() {
		if e.Kind == job.KindHang {
			f.report, f.took = *e.Hang, e.Time.Sub(e.Hang.Since)
		}
	}
	return f
}

// check returns what is wrong with what gangrun has found out, or "".
func (h aHang) check(f foundHang, rank int) string {
	want := []int{rank}
	if h.all {
		want = nil
	}
	switch limit := time.Duration(f.report.Limit); {
	case f.cause.Category != job.Hang:
		return fmt.Sprintf("the cause is %q (%s), want hang", f.cause.Category, f.cause.Text)
	case !slices.Equal(f.report.Ranks, want):
		return fmt.Sprintf("it names the ranks %v, want %v: %s", f.report.Ranks, want, f.report.Text)
	case len(f.report.Groups) == 0:
		return "there are no stacks"
	case f.took > limit+hangLate:
		return fmt.Sprintf("found after %s, with the limit %s", f.took, limit)
	}
	return ""
}

// TestHangs checks that gangrun finds a hanging gang, and names the rank that holds it up.
func TestHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode    string
		flavour job.MPI
	}{{"missing", job.MPIMPICH}, {"kernel", job.MPIOpenMPI}, {"mutex", job.MPINone}} {
		t.Run(c.mode+" "+string(c.flavour), func(t *testing.T) { // not in parallel, because the ranks use all cores
			h := hangs[slices.IndexFunc(hangs, func(h aHang) bool { return h.mode == c.mode })]
			const rank = 5
			if wrong := h.check(h.run(t, c.flavour, rank), rank); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// aHealthy is a healthy job with irregular steps. pause is its longest pause, as a multiple of the limit.
type aHealthy struct {
	kind  string
	pause float64
}

var healthy = []aHealthy{
	{"evaluation", 2}, {"compile", 3}, {"checkpoint", 2}, {"think", 0.7}, {"uneven", 0.7}, {"quiet", 3}, {"first", 0}, {"idle", 0},
}

// run runs a healthy job and returns what is wrong, or "". It calls disturb when the ranks have been started.
func (h aHealthy) run(t *testing.T, disturb func(*controlled)) string {
	t.Helper()
	script, err := filepath.Abs("testdata/hangs/healthy.py")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	r := b.start(nil, "--output", "none", "--preflight", "off", "--retries", "0", "--mpi", "none", "--hang-timeout", hangTimeout.String(), "--loopback", "2", "-n", "4",
		"--", "python3", script, h.kind, fmt.Sprint(h.pause*hangTimeout.Seconds()))
	if disturb != nil {
		r.journalled("the start of all ranks", func(e job.Event) bool { return e.Kind == job.KindAllStarted })
		disturb(r)
	}
	code := r.finish()
	for _, e := range b.events() {
		if e.Kind == job.KindHang {
			return "a false alarm: " + e.Text
		}
	}
	if code != 0 {
		return fmt.Sprintf("exit code %d: %s", code, strings.TrimSpace(b.file("stderr")))
	}
	return ""
}

// TestHealthyIsNoHang checks that gangrun does not end a job that pauses between its steps, but shows signs of life
// meanwhile.
func TestHealthyIsNoHang(t *testing.T) {
	t.Parallel()
	if wrong := (aHealthy{"evaluation", 2}).run(t, nil); wrong != "" {
		t.Error(wrong)
	}
}
