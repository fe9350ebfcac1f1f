package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// The runs with mishaps execute testdata/tally.py with tallyRanks ranks on two of four hosts. Each rank makes
// tallySteps steps.
const (
	tallyRanks = 4
	tallySteps = 60
)

// tally is a run of tally.py to which mishaps happen.
type tally struct {
	*farRun
	random *rand.Rand
	dir    string
	all    []stroke
	missed int
	leased bool // whether any GPU was leased
	// readOnly is the host whose /tmp is read-only; nil if there is none.
	readOnly *testhosts.Host
}

// monotonic returns the time of the clock that ranks use for their stamps, in seconds.
func monotonic() float64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // Linux always has this clock
	return float64(now.Nano()) / 1e9
}

// sleep waits for a random time, because a fault may come at any moment.
func (r *tally) sleep(least, most time.Duration) {
	time.Sleep(least + time.Duration(r.random.Int64N(int64(most-least)+1)))
}

// twoGPUs returns what nvidia-smi prints about two idle GPUs. It is made from recorded output for one GPU.
func twoGPUs(t testing.TB) []byte {
	t.Helper()
	said, err := os.ReadFile("../../topology/probe/testdata/query-550-h100.xml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(said)
	begin, end := strings.Index(text, "\t<gpu id="), strings.Index(text, "\t</gpu>\n")+len("\t</gpu>\n")
	first := text[begin:end]
	second := strings.NewReplacer("-000000000001<", "-000000000002<", ":18:00", ":19:00", "<pci_bus>18<", "<pci_bus>19<", "<minor_number>0<", "<minor_number>1<", "1650000000000", "1650000000001").Replace(first)
	return []byte(text[:begin] + first + second + "</nvidia_smi_log>\n")
}

// simulatedDriver is an nvidia-smi that reports different GPUs on each host.
const simulatedDriver = `#!/bin/sh
[ "$*" = "-q -x" ] || exit 1
n=$(hostname | tr -dc 0-9)
exec sed "s/GPU-11111111-/GPU-$n$n$n$n$n$n$n$n-/" "${0%/*}/gpus.xml"
`

// tallyOptions has the differences between runs of tally.py.
type tallyOptions struct {
	readOnly       int           // number of the host whose /tmp is read-only; 0 means none
	timeout, grace time.Duration // the host timeout and the orphan grace
	held           bool          // no rank ends before release is called
}

// startTally starts a run.
func startTally(t testing.TB, random *rand.Rand, opts tallyOptions) *tally {
	t.Helper()
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	bed := testhosts.Up(t, farHosts)
	var sealed *testhosts.Host
	if opts.readOnly > 0 {
		sealed = bed.Host(opts.readOnly)
		if err := sealed.Remount("/tmp", "ro"); err != nil {
			t.Fatal(err)
		}
	}
	dir := bed.Shared()
	program, err := os.ReadFile("testdata/tally.py")
	own, err2 := os.ReadFile(gangrun)
	wrapper := filepath.Join(dir, "bin/gangrun")
	err = errors.Join(err, err2, os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Mkdir(filepath.Join(dir, "own"), 0o755), os.Mkdir(filepath.Join(dir, "parts"), 0o755),
		os.WriteFile(filepath.Join(dir, "tally.py"), program, 0o644),
		os.WriteFile(filepath.Join(dir, "bin/gpus.xml"), twoGPUs(t), 0o644))
	if opts.held {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "hold"), nil, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, wrapper+"-itself", own)
	writeProgram(t, wrapper, []byte("#!/bin/sh\nPATH=${0%/*}:$PATH exec \"$0\"-itself \"$@\"\n"))
	writeProgram(t, filepath.Join(dir, "bin/nvidia-smi"), []byte(simulatedDriver))
	r := &tally{farRun: &farRun{t: t, bed: bed, gangrun: wrapper, begun: time.Now()}, random: random, dir: dir, readOnly: sealed}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gangrun said:\n%s", r.errs.String())
		}
	})
	r.control("run", "--hosts", "h1:2,h2:2,h3:2,h4:2", "-n", strconv.Itoa(tallyRanks), "--mpi", "none", "--output", "none", "--preflight", "off",
		"--retries", "20", "--checkpoint-dir", filepath.Join(dir, "ckpt"), "--host-timeout", opts.timeout.String(), "--orphan-grace", opts.grace.String(), "--grace", "2s",
		"--", python, filepath.Join(dir, "tally.py"), dir, strconv.Itoa(tallySteps), "0.1")
	return r
}

// release lets the ranks of a run end that was started with held.
func (r *tally) release() {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, "hold")); err != nil {
		r.t.Fatal(err)
	}
}

// stepped waits until every rank of an attempt has made a step.
func (r *tally) stepped(attempt int) {
	r.t.Helper()
	if !r.await(fmt.Sprintf("a step of every rank of attempt %d", attempt), func() bool {
		own, _ := filepath.Glob(filepath.Join(r.dir, fmt.Sprintf("own/%d.*.err", attempt)))
		return len(own) == tallyRanks && !slices.ContainsFunc(own, func(path string) bool {
			text, err := os.ReadFile(path)
			return err != nil || len(text) == 0
		})
	}) {
		r.t.Fatal("gangrun has ended before")
	}
}

// struck returns the hosts to which a mishap may happen: those of the latest placement or, if spares is true, all
// hosts. It leaves out the hosts with a mishap that lasts until the end of the run.
func (r *tally) struck(spares bool) (hosts []string) {
	for _, e := range r.events() {
		if e.Kind == job.KindPlaced {
			hosts = hosts[:0]
			for _, rank := range e.Placement.Ranks {
				hosts = append(hosts, rank.Host)
			}
		}
	}
	if spares {
		hosts = []string{"h1", "h2", "h3", "h4"}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return slices.DeleteFunc(hosts, func(h string) bool {
		return slices.ContainsFunc(r.all, func(s stroke) bool { return s.host == h && s.undo != nil })
	})
}

// happen makes a mishap happen to a host of the gang or, if spares is true, to any host. It returns false if the run
// is over.
func (r *tally) happen(m mishap, spares bool) bool {
	t := r.t
	t.Helper()
	if !r.await("the first step of a rank", func() bool {
		own, _ := filepath.Glob(filepath.Join(r.dir, "own/*"))
		return len(own) > 0
	}) {
		return false
	}
	r.sleep(0, 2*time.Second)
	select {
	case <-r.exited:
		return false
	default:
	}
	hosts := r.struck(spares)
	if len(hosts) == 0 {
		r.missed++
		return true
	}
	s := stroke{mishap: m, host: hosts[r.random.IntN(len(hosts))], at: time.Now(), clock: monotonic()}
	h := r.bed.Host(int(s.host[1] - '0'))
	err := m.do(r, h)
	s.over, s.overAt = time.Now(), monotonic()
	switch {
	case errors.Is(err, errMissed):
		r.missed++
	case err != nil:
		t.Fatalf("%s on %s: %v", m.name, s.host, err)
	default:
		r.all = append(r.all, s)
	}
	return true
}

// conclude waits for the end of the run, ends the mishaps and checks everything.
func (r *tally) conclude() (state job.State, attempts int) {
	t := r.t
	t.Helper()
	code := r.finish()
	mended := time.Now()
	for _, s := range r.all {
		if s.undo != nil {
			if err := s.undo(r.bed.Host(int(s.host[1] - '0'))); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.nobodyLeft()
	took := time.Since(mended)
	for _, s := range r.all {
		t.Logf("%s: %s on %s for %s", s.at.Format("15:04:05.0"), s.name, s.host, s.over.Sub(s.at).Round(10*time.Millisecond))
	}
	report := r.report()
	for _, a := range report.Attempts {
		if a.Cause != nil {
			t.Logf("%s: attempt %d: %s (%s) on %q: %s", a.Ended.Format("15:04:05.0"), a.Number, a.Cause.Category, a.Cause.Signature, a.Cause.Host, a.Cause.Text)
		}
	}
	t.Logf("%s: %s after %d attempts, exit code %d: %s; nothing left after %s", mended.Format("15:04:05.0"), report.State, len(report.Attempts), code, report.Reason, took.Round(10*time.Millisecond))
	r.checkCauses(report)
	r.checkResult(report, code)
	r.checkStamps()
	r.checkLogs(report)
	r.checkDirectories()
	return report.State, len(report.Attempts)
}

// TestRandomFaults makes three mishaps happen to a run, one after the other.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	needPython(t, "json")
	r := startTally(t, rand.New(rand.NewPCG(1, 1)), tallyOptions{readOnly: 2, timeout: patience, grace: patience, held: true})
	for _, next := range []struct {
		attempt int
		mishap  string
	}{{1, "rank killed"}, {2, "controller killed, attach"}, {2, "agent killed"}} {
		r.stepped(next.attempt)
		m := mishaps[slices.IndexFunc(mishaps, func(m mishap) bool { return m.name == next.mishap })]
		if !r.happen(m, false) {
			t.Fatal("the run was over")
		}
	}
	r.stepped(3)
	r.release()
	if state, attempts := r.conclude(); state != job.StateSucceeded || attempts != 3 || r.missed > 0 {
		t.Errorf("%s after %d attempts, %d mishaps missed", state, attempts, r.missed)
	}
}
