package main_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/supervisor"
)

// The job that mishaps happen to: testdata/tally.py, on two of four hosts.
const (
	tallyRanks = 4
	tallySteps = 60
)

// Limits of its runs, and how long what must end no attempt may take.
const (
	mishapTimeout = 6 * time.Second
	mishapGrace   = 5 * time.Second
	shortly       = 2 * time.Second
)

// mishap is something that happens to a host while a gang runs.
type mishap struct {
	name string
	do   func(*tally, *testhosts.Host) error
	// mend is done when the run is over; until then nothing else happens to the host.
	mend func(*testhosts.Host) error
	// cause is what an attempt that it has happened to may end with; "" where it must
	// go on. Where it is anywhere, the cause may be of any host.
	cause    job.Category
	anywhere bool
	loses    bool // what ranks have printed and what is to happen to it
	frozen   bool // ranks run for an instant when the host goes on, whenever that is
}

// meanwhile makes a mishap of two actions with some time between them.
func meanwhile(do, undo func(*testhosts.Host) error, least, most time.Duration) func(*tally, *testhosts.Host) error {
	return func(r *tally, h *testhosts.Host) error {
		err := do(h)
		r.sleep(least, most)
		return errors.Join(err, undo(h))
	}
}

// once makes a mishap of an action.
func once(do func(*testhosts.Host) error) func(*tally, *testhosts.Host) error {
	return func(_ *tally, h *testhosts.Host) error { return do(h) }
}

// kill makes a mishap of the end of one of the host's processes that is wanted.
func kill(wanted func(testhosts.Process) bool) func(*tally, *testhosts.Host) error {
	return func(r *tally, h *testhosts.Host) error {
		all, err := h.Processes("")
		all = slices.DeleteFunc(all, func(p testhosts.Process) bool { return !wanted(p) })
		if err != nil || len(all) == 0 {
			return errors.Join(err, errMissed)
		}
		return syscall.Kill(all[r.random.IntN(len(all))].PID, syscall.SIGKILL)
	}
}

// killController makes a mishap of the controller's end, and of its successor's coming
// some time later.
func killController(least, most time.Duration) func(*tally, *testhosts.Host) error {
	return func(r *tally, _ *testhosts.Host) error {
		if err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return err
		}
		<-r.exited
		if r.cmd.ProcessState.Exited() {
			return errMissed // the run was over
		}
		r.sleep(least, most)
		r.control("attach")
		return nil
	}
}

// errMissed is the error of a mishap to what was not there.
var errMissed = errors.New("there was nothing to happen to")

const long = 16 * time.Second // at most, from before a host is lost until after another attempt has begun

var mishaps = []mishap{
	{name: "cut for a while", do: meanwhile((*testhosts.Host).Cut, (*testhosts.Host).Mend, 0, shortly)},
	{name: "cut for good", do: once((*testhosts.Host).Cut), mend: (*testhosts.Host).Mend, cause: job.HostLost, loses: true},
	{name: "power lost, then booted", do: meanwhile((*testhosts.Host).Poweroff, (*testhosts.Host).Boot, 0, long), cause: job.HostLost, loses: true},
	{name: "host killed, then booted", do: meanwhile((*testhosts.Host).Kill, (*testhosts.Host).Boot, 0, long), cause: job.HostLost, loses: true},
	{name: "frozen for a while", do: meanwhile((*testhosts.Host).Freeze, (*testhosts.Host).Thaw, 0, shortly)},
	{name: "frozen for long", do: meanwhile((*testhosts.Host).Freeze, (*testhosts.Host).Thaw, shortly, long), cause: job.HostLost, loses: true, frozen: true},
	{name: "sshd restarted", do: meanwhile((*testhosts.Host).StopSSH, (*testhosts.Host).StartSSH, 0, shortly)},
	{name: "sshd stopped", do: once((*testhosts.Host).StopSSH), mend: (*testhosts.Host).StartSSH, cause: job.HostLost, loses: true},
	{name: "bridge killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) > 2 && p.Args[1] == "bridge" })},
	{name: "agent killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) == 4 && p.Args[1] == "agent" }), cause: job.HostLost, loses: true},
	{name: "watchdog killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) == 3 && p.Args[1] == "agent" }), cause: job.HostLost, loses: true},
	{name: "rank killed", do: kill(func(p testhosts.Process) bool { return len(p.Args) > 1 && filepath.Base(p.Args[1]) == "tally.py" }), cause: job.Killed},
	{name: "controller killed, attach", do: killController(0, shortly)},
	{name: "controller killed, attach after the grace", do: killController(mishapGrace+shortly, mishapGrace+3*shortly), cause: job.HostLost, anywhere: true, loses: true},
	{name: "20 % packet loss", do: once(func(h *testhosts.Host) error { return h.Loss(20) }), mend: func(h *testhosts.Host) error { return h.Loss(0) }},
	{name: "10 mbit/s line", do: once(func(h *testhosts.Host) error { return h.Rate("10mbit") }), mend: func(h *testhosts.Host) error { return h.Rate("") }},
	{name: "disk full, then not", do: meanwhile(func(h *testhosts.Host) error { return h.Fill("/tmp") }, func(h *testhosts.Host) error { return h.Drain("/tmp") }, 0, 2*shortly), cause: job.DiskFull, loses: true},
}

// stroke is a mishap that has happened.
type stroke struct {
	mishap
	host     string
	at, over time.Time
	clock    float64 // at, on the clock by which ranks stamp
	overAt   float64
}

// tally is a run of tally.py that mishaps happen to.
type tally struct {
	*farRun
	random *rand.Rand
	dir    string
	all    []stroke
	missed int
	leased bool // there was a lease
}

// monotonic is the clock by which ranks stamp, in seconds.
func monotonic() float64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it always is there
	return float64(now.Nano()) / 1e9
}

func (r *tally) sleep(least, most time.Duration) {
	time.Sleep(least + time.Duration(r.random.Int64N(int64(most-least)+1)))
}

// twoGPUs is what nvidia-smi says of two idle GPUs, made of what it has said of one.
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

// pretendedDriver is an nvidia-smi that tells of GPUs of each host's own.
const pretendedDriver = `#!/bin/sh
[ "$*" = "-q -x" ] || exit 1
n=$(hostname | tr -dc 0-9)
exec sed "s/GPU-11111111-/GPU-$n$n$n$n$n$n$n$n-/" "${0%/*}/gpus.xml"
`

// startTally starts a run; readOnly is the host whose /tmp cannot be written, if any.
func startTally(t testing.TB, random *rand.Rand, readOnly int) *tally {
	t.Helper()
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	bed := testhosts.Up(t, farHosts)
	if readOnly > 0 {
		if err := bed.Host(readOnly).Remount("/tmp", "ro"); err != nil {
			t.Fatal(err)
		}
	}
	dir := bed.Shared()
	program, err := os.ReadFile("testdata/tally.py")
	own, err2 := os.ReadFile(gangrun)
	wrapper := filepath.Join(dir, "bin/gangrun")
	err = errors.Join(err, err2, os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.WriteFile(wrapper+"-itself", own, 0o755), os.Mkdir(filepath.Join(dir, "own"), 0o755), os.Mkdir(filepath.Join(dir, "parts"), 0o755),
		os.WriteFile(filepath.Join(dir, "tally.py"), program, 0o644),
		os.WriteFile(filepath.Join(dir, "bin/gpus.xml"), twoGPUs(t), 0o644),
		os.WriteFile(filepath.Join(dir, "bin/nvidia-smi"), []byte(pretendedDriver), 0o755),
		os.WriteFile(wrapper, []byte("#!/bin/sh\nPATH=${0%/*}:$PATH exec \"$0\"-itself \"$@\"\n"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	r := &tally{farRun: &farRun{t: t, bed: bed, gangrun: wrapper, begun: time.Now()}, random: random, dir: dir}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gangrun said:\n%s", r.errs.String())
		}
	})
	r.control("run", "--hosts", "h1:2,h2:2,h3:2,h4:2", "-n", strconv.Itoa(tallyRanks), "--mpi", "none", "--output", "none", "--preflight", "off",
		"--retries", "20", "--checkpoint-dir", filepath.Join(dir, "ckpt"), "--host-timeout", mishapTimeout.String(), "--orphan-grace", mishapGrace.String(), "--grace", "2s",
		"--", python, filepath.Join(dir, "tally.py"), dir, strconv.Itoa(tallySteps), "0.1")
	return r
}

// struck returns the hosts that something may happen to: of the gang that was placed
// last, or of all, those that nothing lasting has happened to.
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
		return slices.ContainsFunc(r.all, func(s stroke) bool { return s.host == h && s.mend != nil })
	})
}

// happen has a mishap happen to a host of the gang, or to any; false where the run is
// over.
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

// conclude waits for the run's end, mends the hosts and looks at everything.
func (r *tally) conclude() (state job.State, attempts int) {
	t := r.t
	t.Helper()
	code := r.finish()
	mended := time.Now()
	for _, s := range r.all {
		if s.mend != nil {
			if err := s.mend(r.bed.Host(int(s.host[1] - '0'))); err != nil {
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

// nobodyLeft waits until no process of the run is left on any host and no GPU is held
// there. One whose holder was killed is told as dead, and free.
func (r *tally) nobodyLeft() {
	t := r.t
	t.Helper()
	limit := time.Now().Add(patience)
	for _, h := range r.bed.Hosts() {
		for left := processes(t, h); len(left) > 0; left = processes(t, h) {
			if time.Now().After(limit) {
				t.Fatalf("left on %s: %q", h.Name(), left)
			}
			time.Sleep(20 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		held, err := h.Exec(ctx, r.gangrun, "leases")
		others, err2 := h.Exec(ctx, "sh", "-c", "find /dev/shm /run/lock -path '*gangrun*' ! -path '*/gangrun.@*'; ls /dev/shm /run/lock | grep -c 'gangrun.@.gpu' || true")
		cancel()
		if err := errors.Join(err, err2); err != nil || regexp.MustCompile(`GPU-\S+ +(held|drain)`).MatchString(held) || strings.Contains(others, "/") {
			t.Errorf("on %s there is left: %s%s %v", h.Name(), held, others, err)
		}
		r.leased = r.leased || strings.TrimSpace(others) != "0"
	}
	if !r.leased {
		t.Error("no GPU was ever held: this tests nothing of leases")
	}
}

// checkCauses checks that every attempt that has failed did so for what has happened.
func (r *tally) checkCauses(report supervisor.Report) {
	for i, a := range report.Attempts {
		if a.Cause == nil {
			if i < len(report.Attempts)-1 {
				r.t.Errorf("attempt %d has failed without a cause: %+v", a.Number, a)
			}
			continue
		}
		if !slices.ContainsFunc(r.all, func(s stroke) bool {
			return s.cause == a.Cause.Category && (s.anywhere || s.host == a.Cause.Host) && !s.at.After(a.Ended.Add(time.Second))
		}) {
			r.t.Errorf("attempt %d has failed as %s (%s) on %q, which is not what has happened", a.Number, a.Cause.Category, a.Cause.Signature, a.Cause.Host)
		}
	}
}

// checkResult checks what the job has computed.
func (r *tally) checkResult(report supervisor.Report, code int) {
	if report.ExitCode == nil || *report.ExitCode != code {
		r.t.Errorf("exit code %d, the report tells %v", code, report.ExitCode)
	}
	if report.State != job.StateSucceeded {
		last := report.Last()
		if report.State != job.StateFailed || code == 0 || code == 70 || last == nil || last.Cause == nil {
			r.t.Errorf("exit code %d, %s without a cause", code, report.State)
		}
		return
	}
	x := make([]uint64, tallyRanks)
	for rank := range x {
		x[rank] = uint64(rank) + 1
	}
	for step := uint64(1); step <= tallySteps; step++ {
		total := uint64(0)
		for rank := range x {
			x[rank] = x[rank]*6364136223846793005 + uint64(rank) + step
			total += x[rank]
		}
		for rank := range x {
			if step%5 == 0 {
				x[rank] ^= total
			}
		}
	}
	for rank, want := range x {
		var got uint64
		data, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("result.%d", rank)))
		if err != nil || json.Unmarshal(data, &got) != nil || got != want {
			r.t.Errorf("rank %d has computed %s, want %d: %v", rank, data, want, err)
		}
	}
	if code != 0 {
		r.t.Errorf("exit code %d of a success", code)
	}
}

// checkStamps checks that no attempt has done anything once the next had begun,
// but for the instant that a host runs when it is frozen no more.
func (r *tally) checkStamps() {
	data, err := os.ReadFile(filepath.Join(r.dir, "stamps"))
	if err != nil {
		r.t.Fatal(err)
	}
	type stamp struct {
		attempt, rank int
		host          string
		at            float64
		what          string
	}
	var all []stamp
	begun := map[int]float64{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var s stamp
		fields := strings.SplitN(line, " ", 5)
		if len(fields) != 5 {
			r.t.Fatalf("%q among the stamps", line)
		}
		s.host, s.what = fields[2], fields[4]
		s.attempt, err = strconv.Atoi(fields[0])
		rank, err2 := strconv.Atoi(fields[1])
		at, err3 := strconv.ParseFloat(fields[3], 64)
		if err := errors.Join(err, err2, err3); err != nil {
			r.t.Fatalf("%q among the stamps: %v", line, err)
		}
		s.rank, s.at = rank, at
		if first, ok := begun[s.attempt]; !ok || at < first {
			begun[s.attempt] = at
		}
		all = append(all, s)
	}
	for _, s := range all {
		for attempt, at := range begun {
			if attempt <= s.attempt || s.at < at {
				continue
			}
			if !slices.ContainsFunc(r.all, func(f stroke) bool {
				return f.frozen && f.host == s.host && s.at > f.clock && s.at < f.overAt+1
			}) {
				r.t.Errorf("rank %d of attempt %d %s on %s %.3f s after attempt %d had begun", s.rank, s.attempt, s.what, s.host, s.at-at, attempt)
			}
		}
	}
}

// delivery is how long before a mishap something must have been printed to be in the
// log in any case.
const delivery = 3 * time.Second

// checkLogs checks that every log is what its rank has printed, byte for byte, up to
// some point: to the end, where nothing has happened to its host.
func (r *tally) checkLogs(report supervisor.Report) {
	t := r.t
	paths, err := filepath.Glob(filepath.Join(r.dir, "own/*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no rank has printed anything: %v", err)
	}
	for _, path := range paths {
		var attempt, rank int
		var stream string
		if _, err := fmt.Sscanf(strings.ReplaceAll(filepath.Base(path), ".", " "), "%d %d %s", &attempt, &rank, &stream); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		own, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("attempts", strconv.Itoa(attempt), job.LogName(rank, stream))
		log, err := os.ReadFile(filepath.Join(r.home(), name))
		if err != nil {
			t.Errorf("a log of what was printed is not there: %v", err)
			continue
		}
		same := alike(own, log)
		if stream == "err" && bytes.HasPrefix(log[same:], []byte("Traceback ")) && (same == 0 || own[same-1] == '\n') {
			log = log[:same] // Python's last words
		}
		if same < len(log) {
			t.Errorf("%s: differs from what was printed after %d of %d bytes: %q, want %q", name, same, len(log), log[same:min(same+80, len(log))], own[same:min(same+80, len(own))])
			continue
		}
		// The last line may have been kept by the rank and not printed yet.
		must := bytes.LastIndexByte(bytes.TrimSuffix(own, []byte("\n")), '\n') + 1
		host := hostOf(report, attempt, rank)
		begun := slices.MinFunc(append([]stroke{{clock: monotonic()}}, slices.DeleteFunc(slices.Clone(r.all), func(s stroke) bool {
			return !s.anywhere && s.host != host
		})...), func(a, b stroke) int { return cmp.Compare(a.clock, b.clock) })
		if slices.ContainsFunc(r.all, func(s stroke) bool { return s.loses && (s.anywhere || s.host == host) }) {
			must = 0
			for _, line := range bytes.SplitAfter(own, []byte("\n")) {
				var at float64
				if _, err := fmt.Sscan(string(line), &at); err != nil || at > begun.clock-delivery.Seconds() {
					break
				}
				must += len(line)
			}
		}
		if len(log) < must {
			t.Errorf("%s of a rank on %s has %d bytes, want %d of %d at least", name, host, len(log), must, len(own))
		}
	}
}

// hostOf is where a rank of an attempt was.
func hostOf(report supervisor.Report, attempt, rank int) string {
	for _, a := range report.Attempts {
		for _, p := range a.Placement {
			if a.Number == attempt && p.Rank == rank {
				return p.Host
			}
		}
	}
	return ""
}

// checkDirectories checks that agents have left nothing but what those keep that did
// not end in order, and that nobody holds.
func (r *tally) checkDirectories() {
	for _, h := range r.bed.Hosts() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		left, err := h.Exec(ctx, "sh", "-c", `for d in /tmp/gangrun-0/* /var/tmp/gangrun-0/*; do [ ! -d "$d" ] || { echo "$d"; flock -n "$d/lock" true || echo "$d is held"; }; done`)
		cancel()
		if err != nil {
			r.t.Fatal(err)
		}
		lost := slices.ContainsFunc(r.all, func(s stroke) bool { return s.loses && (s.anywhere || s.host == h.Name()) })
		if strings.Contains(left, "held") || left != "" && !lost {
			r.t.Errorf("on %s there is left: %q", h.Name(), left)
		}
	}
}

// TestRandomFaults has three mishaps happen to a run, one after the other.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	needPython(t, "json")
	r := startTally(t, rand.New(rand.NewPCG(1, 1)), 2)
	for _, name := range []string{"rank killed", "controller killed, attach", "agent killed"} {
		m := mishaps[slices.IndexFunc(mishaps, func(m mishap) bool { return m.name == name })]
		if !r.happen(m, false) {
			t.Fatal("the run was over")
		}
	}
	if state, attempts := r.conclude(); state != job.StateSucceeded || attempts < 2 || r.missed > 0 {
		t.Errorf("%s after %d attempts, %d mishaps missed", state, attempts, r.missed)
	}
}
