//go:build soak

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testseed"
)

const (
	// stragglerWindow is the --straggler-window of the tests.
	stragglerWindow = 10 * time.Second
	// stragglerRanks is the number of ranks of each gang.
	stragglerRanks = 4
	// stragglerLimit is the time in which gangrun must name a slow rank.
	stragglerLimit = 10 * stragglerWindow
	// equalTime is how long ranks that are equal run. It has several windows.
	equalTime = 5 * stragglerWindow
	// slowed is the speed of a slow rank as a fraction of its usual speed.
	slowed = 0.65
	// slowLine is the rate of a slow line.
	slowLine = "20mbit"
	// preferred is the nice value that makes ranks run nearly as on a machine of their own.
	preferred = -10
	// competitors is the number of processes that compete with a rank for its core. Each of them uses at most
	// competitorTime seconds of CPU time if nothing ends it.
	competitors, competitorTime = 4, 300
)

// aSlowdown is a way to slow down the process of a rank until the test ends.
type aSlowdown struct {
	name   string
	reason job.StragglerReason
	begin  func(t *testing.T, pids []int, rank int) // if it is nil, the network line of the host of the rank is slow
}

var slowdowns = []aSlowdown{
	{"quota", job.SlowQuota, limitCPU},
	{"competitor", job.SlowShared, compete},
	{"disk", job.SlowDisk, limitDisk},
	{"network", job.SlowNetwork, nil},
}

// rate returns how fast a number of a process grows per second. It measures for at least four seconds.
func rate(number func() float64) float64 {
	before, at := number(), time.Now()
	time.Sleep(4 * time.Second)
	return (number() - before) / time.Since(at).Seconds()
}

// v1Group moves a process into a new control group of version 1 with these settings, until the test ends.
func v1Group(t *testing.T, controller string, pid int, settings ...[2]string) (dir string) {
	t.Helper()
	roots := testhosts.V1Roots(controller)
	if len(roots) == 0 || os.Geteuid() != 0 {
		noskip.Skip(t, "there are no control groups of version 1 for %s, or this is not root", controller)
	}
	dir, err := os.MkdirTemp(roots[0], "gangrun-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // the process has ended by then
	for _, s := range append(settings, [2]string{"cgroup.procs", strconv.Itoa(pid)}) {
		if err := os.WriteFile(filepath.Join(dir, s[0]), []byte(s[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// limitCPU gives the process of a rank less CPU time than it needs. Each rank gets a control group with a weight as
// that of preferred, because the nice value of a process in a group has no effect outside the group.
func limitCPU(t *testing.T, pids []int, rank int) {
	groups := make([]string, len(pids))
	for i, pid := range pids {
		groups[i] = v1Group(t, "cpu", pid, [2]string{"cpu.shares", "9548"})
	}
	pid := pids[rank]
	const period = 100_000 // microseconds; the default of the kernel
	used := rate(func() float64 {
		fields := strings.Fields(string(must(os.ReadFile(proc(pid, "schedstat")))(t)))
		return must(strconv.ParseFloat(fields[0], 64))(t) / 1e9
	})
	quota := max(1000, int(slowed*used*period))
	t.Logf("it uses %.2f of a core, and may use %.2f", used, float64(quota)/period)
	if err := os.WriteFile(filepath.Join(groups[rank], "cpu.cfs_quota_us"), []byte(strconv.Itoa(quota)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// compete binds a process to a core, together with competitors in sessions of their own. The kernel may share a core
// between sessions. If all competitors were in one session, a process that often sleeps would get all the CPU time
// that it needs.
func compete(t *testing.T, pids []int, rank int) {
	var core unix.CPUSet
	core.Set(1)
	if err := unix.SchedSetaffinity(pids[rank], &core); err != nil {
		t.Fatal(err)
	}
	for range competitors {
		other := exec.Command("taskset", "-c", "1", "nice", "-n", strconv.Itoa(preferred), "sh", "-c", fmt.Sprintf("ulimit -t %d; while :; do :; done", competitorTime))
		other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = other.Process.Kill()
			_ = other.Wait()
		})
	}
}

// limitDisk lets a process read fewer blocks per second from the disk than it needs.
func limitDisk(t *testing.T, pids []int, rank int) {
	pid := pids[rank]
	var file unix.Stat_t
	if err := unix.Stat(diskFile(t), &file); err != nil {
		t.Fatal(err)
	}
	read := rate(func() float64 {
		_, rest, _ := strings.Cut(string(must(os.ReadFile(proc(pid, "io")))(t)), "read_bytes: ")
		line, _, _ := strings.Cut(rest, "\n")
		return must(strconv.ParseFloat(line, 64))(t) / 4096
	})
	limit := max(1, int(slowed*read))
	t.Logf("it reads %.1f blocks a second, and may read %d", read, limit)
	v1Group(t, "blkio", pid, [2]string{"blkio.throttle.read_iops_device", fmt.Sprintf("%d:%d %d", unix.Major(file.Dev), unix.Minor(file.Dev), limit)})
}

// must returns a function that returns value, or fails the test if err is not nil.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// diskFile returns the path of a file of 1 MiB on a disk.
func diskFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(os.TempDir(), "gangrun-test-blocks")
	if info, err := os.Stat(path); err == nil && info.Size() == 1<<20 {
		return path
	}
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// prefer gives the ranks of a gang more CPU time than other processes of this machine.
func prefer(t *testing.T, r *controlled) {
	for rank := range stragglerRanks {
		if err := unix.Setpriority(unix.PRIO_PROCESS, r.started(1, rank), preferred); err != nil {
			t.Fatal(err)
		}
	}
}

// evenGang starts ranks that do the same work for a time. waits is "spin" or "sleep".
func evenGang(t *testing.T, flavour job.MPI, waits string, lasts time.Duration) *controlled {
	t.Helper()
	args := []string{"--output", "none", "--preflight", "off", "--retries", "0", "--mpi", string(flavour), "--straggler-window", stragglerWindow.String(),
		"--loopback", "2", "-n", strconv.Itoa(stragglerRanks), "--"}
	if flavour == job.MPINone {
		args = append(args, "python3", must(filepath.Abs("testdata/stragglers/even.py"))(t))
	} else {
		args = append(args, mpiProgram(t, evenSource, flavour))
	}
	return newBench(t).start(nil, append(args, strconv.Itoa(int(lasts.Seconds())), diskFile(t), waits)...)
}

// try starts a gang, slows down a rank, and returns the first reports of stragglers.
func (s aSlowdown) try(t *testing.T, flavour job.MPI, rank int) (found []job.StragglerReport) {
	t.Helper()
	var begun time.Time
	first := func(events func() []job.Event) {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for begun = time.Now(); time.Since(begun) < stragglerLimit && len(found) == 0; <-tick.C {
			found = stragglers(events())
		}
		if len(found) > 0 {
			t.Logf("after %s: %s", time.Since(begun).Round(time.Second), found[0].Text)
		}
	}
	if s.begin == nil {
		bed := testhosts.Up(t, stragglerRanks)
		program := filepath.Join(bed.Shared(), "even")
		writeProgram(t, program, must(os.ReadFile(mpiProgram(t, evenSource, flavour)))(t))
		blocks := filepath.Join(bed.Shared(), "blocks")
		if err := os.WriteFile(blocks, make([]byte, 1<<20), 0o644); err != nil {
			t.Fatal(err)
		}
		lasts := int((stragglerLimit + time.Minute).Seconds())
		r := startFarCommand(t, bed, "h1:1,h2:1,h3:1,h4:1", stragglerRanks, flavour, []string{program, strconv.Itoa(lasts), blocks, "sleep"},
			"--retries", "0", "--straggler-window", stragglerWindow.String())
		progress := func() bool {
			return slices.ContainsFunc(r.events(), func(e job.Event) bool { return e.Kind == job.KindProgress })
		}
		if !r.await("progress", progress) {
			t.Fatal("gangrun has ended")
		}
		if err := bed.Host(rank + 1).Rate(slowLine); err != nil {
			t.Fatal(err)
		}
		first(r.events)
		_ = r.cmd.Process.Signal(unix.SIGTERM)
		r.finish()
		return found
	}
	r := evenGang(t, flavour, "sleep", stragglerLimit+time.Minute)
	prefer(t, r)
	r.journalled("progress", func(e job.Event) bool { return e.Kind == job.KindProgress })
	var pids []int
	for number := range stragglerRanks {
		pids = append(pids, r.started(1, number))
	}
	s.begin(t, pids, rank)
	first(r.events)
	r.strike(r.cmd.Process.Pid, unix.SIGTERM)
	r.finish()
	return found
}

// stragglers returns the reports of stragglers in the events.
func stragglers(events []job.Event) (found []job.StragglerReport) {
	for _, e := range events {
		if e.Kind == job.KindStraggler {
			found = append(found, *e.Straggler)
		}
	}
	return found
}

// TestSoakStragglers slows down a rank in each of COUNT gangs, in random ways. SEED repeats them. In at least 90 % of
// the gangs, gangrun must name this rank with the right reason before any other rank.
func TestSoakStragglers(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 50)
	random := rand.New(rand.NewPCG(seed, 2))
	flavours := append(slices.Clone(mpiFlavours), job.MPINone)
	right := map[string]int{}
	tried := map[string]int{}
	all := 0
	for n := range count {
		s := slowdowns[random.IntN(len(slowdowns))]
		flavour, rank := flavours[random.IntN(len(flavours))], random.IntN(stragglerRanks)
		if s.begin == nil && flavour == job.MPINone {
			flavour = job.MPIMPICH // the other libraries send almost nothing
		}
		if only := os.Getenv("ONLY"); only != "" && only != s.name {
			continue
		}
		t.Run(fmt.Sprintf("%d %s %s %d", n, s.name, flavour, rank), func(t *testing.T) {
			tried[s.name]++
			found := s.try(t, flavour, rank)
			if len(found) == 0 {
				t.Log("nothing was found")
			} else if found[0].Rank == rank && found[0].Reason == s.reason {
				right[s.name]++
				all++
			} else {
				t.Logf("it should be rank %d, by %s", rank, s.reason)
			}
		})
	}
	total := 0
	for _, s := range slowdowns {
		total += tried[s.name]
		t.Logf("%s: %d of %d were named with the right reason", s.name, right[s.name], tried[s.name])
	}
	t.Logf("SEED=%d: %d of %d", seed, all, total)
	if 10*all < 9*total {
		t.Errorf("%d of %d are right, want at least 90 %%", all, total)
	}
}

// TestSoakEqualRanks runs COUNT gangs whose ranks are equal. SEED repeats them. gangrun must report no straggler.
func TestSoakEqualRanks(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 50)
	random := rand.New(rand.NewPCG(seed, 3))
	flavours := append(slices.Clone(mpiFlavours), job.MPINone)
	for n := range count {
		flavour, waits := flavours[random.IntN(len(flavours))], []string{"spin", "sleep"}[random.IntN(2)]
		t.Run(fmt.Sprintf("%d %s %s", n, flavour, waits), func(t *testing.T) {
			r := evenGang(t, flavour, waits, equalTime)
			if code := r.finish(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			for _, s := range stragglers(r.events()) {
				t.Errorf("a false alarm: %s", s.Text)
			}
		})
	}
	t.Logf("SEED=%d: %d gangs of equal ranks", seed, count)
}
