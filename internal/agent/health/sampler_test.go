package health

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/noskip"
)

// If growEnv is set, this test binary uses 1 MiB more for each line that it reads: of page cache if the line
// is a path, and otherwise of memory.
const growEnv = "GANGRUN_HEALTH_TEST_GROW"

func grow() {
	var kept [][]byte
	var file *os.File
	piece := bytes.Repeat([]byte{1}, 1<<20)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if path := lines.Text(); path == "" {
			kept = append(kept, bytes.Clone(piece))
		} else {
			if file == nil {
				file, _ = os.Create(path)
			}
			if _, err := file.Write(piece); err != nil {
				os.Exit(1)
			}
			_ = file.Sync()
		}
		fmt.Println(len(kept))
	}
	os.Exit(0)
}

// grower is a process in a memory group of its own, which uses more and more memory.
type grower struct {
	pid int
	in  io.Writer
	out *bufio.Scanner
}

// memoryGroup makes a control group with a limit below this process's own group.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	own, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	var why error
	for _, g := range cgroup.MemoryOf(string(own), string(mounts)) {
		dir := filepath.Join(g.Dir, fmt.Sprintf("gangrun-health-test-%d", os.Getpid()))
		if why = os.Mkdir(dir, 0o755); why != nil {
			continue
		}
		name := "memory.max"
		if g.V1 {
			name = "memory.limit_in_bytes"
		}
		if why = os.WriteFile(filepath.Join(dir, name), []byte(strconv.FormatInt(limit, 10)), 0); why == nil {
			t.Cleanup(func() {
				for deadline := time.Now().Add(10 * time.Second); os.Remove(dir) != nil && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond) // until the kernel has forgotten the process
				}
			})
			return dir
		}
		_ = os.Remove(dir)
	}
	noskip.Skip(t, "no control group with a limit of memory can be made here: %v", why)
	return ""
}

func startGrower(t *testing.T, group string) *grower {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell enters the group before the program begins.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ > "$1/cgroup.procs" && exec "$2"`, "sh", group, exe)
	cmd.Env = append(os.Environ(), growEnv+"=1", "GOGC=off", "GOMAXPROCS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &grower{cmd.Process.Pid, in, bufio.NewScanner(out)}
}

// more makes the process use 1 MiB more. It returns false if the process has ended.
func (g *grower) more(path string) bool {
	_, err := io.WriteString(g.in, path+"\n")
	return err == nil && g.out.Scan()
}

func (s *sampler) sampleMemory() (sample Sample) {
	sample.Memory, sample.Kills = s.memory(s.ranks())
	return sample
}

// TestGroupKills grows a process until the kernel kills it, and expects a sign even if the kernel's log
// cannot be read.
func TestGroupKills(t *testing.T) {
	group := memoryGroup(t, 64<<20)
	g, witness := startGrower(t, group), startGrower(t, group)
	s := newSampler(Options{Ranks: func() map[int]int { return map[int]int{g.pid: 3, witness.pid: 4} }})
	defer s.log.Close()
	j, at := NewJudge(), time.Unix(1e9, 0)
	if !witness.more("/dev/null") {
		t.Fatal("the second process is dead")
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", g.pid), []byte("1000"), 0)
	j.Judge(at, s.sampleMemory())
	for g.more("") {
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		at = at.Add(time.Millisecond)
		for _, sign := range j.Judge(at, s.sampleMemory()) {
			if sign.Sign != job.HealthOOM {
				continue
			}
			want := "the kernel has killed 1 process of the control group of ranks 3-4 for want of memory (" + group + ")"
			if sign.Text != want || sign.Severity != job.SeverityError || sign.Count != 1 || !slices.Equal(sign.Ranks, []int{3, 4}) || sign.Hint == "" {
				t.Errorf("%+v, want %q", sign, want)
			}
			return
		}
	}
	t.Error("no sign came")
}

// TestGroupRunsOut grows a process in a group of 96 MiB by 1 MiB a sample, and expects the sign
// before the kernel kills it.
func TestGroupRunsOut(t *testing.T) {
	const limit = 96 << 20
	group := memoryGroup(t, limit)
	g := startGrower(t, group)
	s := newSampler(Options{Ranks: func() map[int]int { return map[int]int{g.pid: 3} }})
	defer s.log.Close()
	j, at := NewJudge(), time.Unix(1e9, 0)
	var seen []int64
	for grown := 1; ; grown++ {
		if !g.more("") {
			t.Fatalf("the process was dead after %d MiB, and no sign came before", grown)
		}
		sample := s.sampleMemory()
		used := sample.Memory[len(sample.Memory)-1].Used
		seen = append(seen, used)
		for _, sign := range j.Judge(at, sample) {
			if len(sign.Ranks) == 0 {
				continue // the sign is about the host
			}
			// With the race detector, the process uses more than 1 MiB more each time.
			rate := float64(used-seen[0]) / float64(len(seen)-1)
			left := time.Duration(float64(limit-used) / rate * float64(Period))
			if sign.Sign != job.HealthMemory || !slices.Equal(sign.Ranks, []int{3}) || !strings.Contains(sign.Text, "% of 96 MiB is used") || !strings.Contains(sign.Text, filepath.Base(group)) {
				t.Errorf("%+v", sign)
			}
			if d := time.Duration(sign.Left); d < left/2 || d > left*2 {
				t.Errorf("%v left, and really about %v", d, left)
			}
			if used < limit*memoryShare/100 || used >= limit {
				t.Errorf("it came at %d bytes", used)
			}
			return
		}
		at = at.Add(Period)
	}
}

// TestPageCacheIsNoUse writes a file of twice the limit of the group, and expects no sign.
func TestPageCacheIsNoUse(t *testing.T) {
	const limit = 96 << 20
	g := startGrower(t, memoryGroup(t, limit))
	s := newSampler(Options{Ranks: func() map[int]int { return map[int]int{g.pid: 3} }})
	defer s.log.Close()
	j, at, file, most := NewJudge(), time.Unix(1e9, 0), filepath.Join(t.TempDir(), "file"), int64(0)
	for range 2 * limit >> 20 {
		if !g.more(file) {
			t.Fatal("the process is dead")
		}
		sample := s.sampleMemory()
		for _, m := range sample.Memory[1:] {
			if len(m.Ranks) == 0 {
				t.Errorf("a group of no rank: %+v", m)
			}
			most = max(most, m.Used)
		}
		for _, sign := range j.Judge(at, sample) {
			if len(sign.Ranks) > 0 {
				t.Errorf("%+v", sign)
			}
		}
		at = at.Add(Period)
	}
	if most == 0 || most > limit*memoryShare/100 {
		t.Errorf("%d bytes count as used", most)
	}
}

// TestTmpfsFillsUp fills a small file system, and expects one sign before it is full and one when it is full.
func TestTmpfsFillsUp(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m"); err != nil {
		noskip.Skip(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := newSampler(Options{Paths: []Path{{dir, UseCheckpoints}, {filepath.Join(dir, "."), UseLogs}, {"/nowhere/at/all", UseTemporary}}})
	defer s.log.Close()
	file, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j, at := NewJudge(), time.Unix(1e9, 0)
	var signs []Sign
	for {
		disks := s.fileSystems(at)
		if len(disks) != 1 || disks[0].Size != 32<<20 || disks[0].Use != UseCheckpoints {
			t.Fatalf("%+v", disks)
		}
		signs = append(signs, j.Judge(at, Sample{Disks: disks})...)
		if disks[0].Free == 0 {
			break
		}
		if _, err := file.Write(make([]byte, 1<<20)); err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		at = at.Add(Period)
	}
	if len(signs) < 2 || !strings.Contains(signs[0].Text, "fills up: 9.0 MiB of 32 MiB is free, and at this rate it is full in about 50 s") ||
		!strings.Contains(signs[len(signs)-1].Text, "is full: 0 B of 32 MiB is free") || signs[0].Sign != job.HealthDiskFull {
		t.Errorf("%+v", signs)
	}
}

// TestFrozenFileSystem checks that a file system that does not answer delays a sample only for a limited
// time, and that only one goroutine waits for it.
func TestFrozenFileSystem(t *testing.T) {
	release, calls := make(chan struct{}), make(chan struct{}, 10)
	f := newFileSystem(Path{"/frozen", UseCheckpoints})
	f.statfs = func(_ string, st *unix.Statfs_t) error {
		calls <- struct{}{}
		<-release
		*st = unix.Statfs_t{Blocks: 10, Bavail: 5, Frsize: 4096}
		return nil
	}
	s := &sampler{disks: []*fileSystem{f, newFileSystem(Path{t.TempDir(), UseLogs})}}
	j, at := NewJudge(), time.Now()
	var signs []Sign
	for range 3 {
		disks := s.fileSystems(at)
		if len(disks) != 2 || disks[0].Stuck < statLimit || disks[1].Stuck != 0 || disks[1].Size == 0 {
			t.Fatalf("%+v", disks)
		}
		signs = append(signs, j.Judge(at, Sample{Disks: disks[:1]})...)
		at = at.Add(frozenTime)
	}
	if len(calls) != 1 {
		t.Errorf("%d calls wait for it", len(calls))
	}
	if len(signs) != 1 || signs[0].Sign != job.HealthFrozen {
		t.Errorf("%+v", signs)
	}
	pending := f.pending
	close(release)
	<-pending
	if d := s.fileSystems(at)[0]; d.Stuck != 0 || d.Free != 5*4096 {
		t.Errorf("after it has answered: %+v", d)
	}
}

// TestWatch checks that Watch takes samples of this host, emits its signs as events, and ends when ctx ends.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		noskip.Skip(t, "no file system can be mounted here: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var found []job.Event
	begun := hostclock.Now()
	Watch(ctx, Options{Host: "h2", Ranks: func() map[int]int { return map[int]int{os.Getpid(): 0} }, Paths: []Path{{dir, UseLogs}}, Emit: func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Health.Sign == job.HealthDiskFull {
			found = append(found, e)
			cancel()
		}
	}})
	if len(found) != 1 || found[0].Kind != job.KindHealth || found[0].Host != "h2" || found[0].Time.Before(begun) || found[0].Hint == "" || !strings.Contains(found[0].Text, dir) {
		t.Errorf("%+v", found)
	}
}

// TestKillsAbove checks that a group that does not count its kills gets the count of the group above it.
func TestKillsAbove(t *testing.T) {
	mount := t.TempDir()
	if err := os.MkdirAll(filepath.Join(mount, "a/b/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := cgroup.Memory{Dir: filepath.Join(mount, "a/b/c"), Mount: mount}
	if dir, _, ok := killsOf(g); ok {
		t.Errorf("%s counts", dir)
	}
	if err := os.WriteFile(filepath.Join(mount, "a/memory.events"), []byte("oom 1\noom_kill 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if dir, n, ok := killsOf(g); !ok || dir != filepath.Join(mount, "a") || n != 7 {
		t.Errorf("%s, %d, %v", dir, n, ok)
	}
}

func TestMeminfo(t *testing.T) {
	const text = "MemTotal:       16000 kB\nMemFree:          100 kB\nMemAvailable:    4000 kB\nSwapTotal:       1000 kB\nSwapFree:         500 kB\n"
	if m, ok := parseMeminfo(text); !ok || m.Limit != 17000<<10 || m.Used != 12500<<10 || m.Group != "" {
		t.Errorf("%+v, %v", m, ok)
	}
	for _, text := range []string{"", "MemTotal: 1 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n"} {
		if m, ok := parseMeminfo(text); ok {
			t.Errorf("%q: %+v", text, m)
		}
	}
}

// BenchmarkSample measures how long one sample of 64 ranks and its judgement take. With a sample every 5 s, 5
// ms are 0.1 % of a core.
func BenchmarkSample(b *testing.B) {
	ranks := map[int]int{}
	for i := range 64 {
		cmd := exec.CommandContext(b.Context(), "sleep", "1000")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		ranks[cmd.Process.Pid] = i
	}
	s := newSampler(Options{Ranks: func() map[int]int { return ranks }, Paths: []Path{{"/", UseCheckpoints}, {"/dev/shm", UseShared}, {"/tmp", UseTemporary}}})
	defer s.log.Close()
	j, at := NewJudge(), time.Now()
	for b.Loop() {
		j.Judge(at, s.sample(at))
		at = at.Add(Period)
	}
}
