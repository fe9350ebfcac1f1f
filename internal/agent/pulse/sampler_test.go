package pulse

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// talker is a shell that runs the lines that it gets, and prints a line after each.
type talker struct {
	in  io.Writer
	out *bufio.Scanner
	pid int
}

func newTalker(t testing.TB) *talker {
	t.Helper()
	cmd := exec.Command("sh")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return &talker{in, bufio.NewScanner(out), cmd.Process.Pid}
}

func (s *talker) do(t testing.TB, script string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.in, script+"; echo done"); err != nil {
		t.Fatal(err)
	}
	if !s.out.Scan() {
		t.Fatal("the shell has ended")
	}
}

// TestSample checks that the counters include the processes of a rank that have ended, and that they never
// fall.
func TestSample(t *testing.T) {
	shell := newTalker(t)
	var s Sampler
	sample := func() job.Pulse {
		t.Helper()
		p, ok := s.Sample(Look([]int{shell.pid}), 3, shell.pid)
		if !ok || p.Rank != 3 {
			t.Fatalf("got %+v, %v", p, ok)
		}
		return p
	}
	shell.do(t, ":")
	first := sample()
	shell.do(t, "head -c 10000000 /dev/zero > /dev/null")
	second := sample()
	if second.Read-first.Read < 10e6 || second.Written-first.Written < 10e6 || second.Faults <= first.Faults {
		t.Errorf("first %+v, then %+v: 10 MB were read and written", first, second)
	}
	shell.do(t, `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done`)
	third := sample()
	if third.CPU <= second.CPU {
		t.Errorf("CPU time %s, then %s", second.CPU, third.CPU)
	}
	shell.do(t, "sleep 1000 & :")
	if p := sample(); p.Processes != 2 || p.RSS <= 0 {
		t.Errorf("%d processes with %d bytes, want 2", p.Processes, p.RSS)
	}
	shell.do(t, `(head -c 5000000 /dev/zero > /dev/null; kill -9 $!) & wait %2`)
	last := sample()
	for name, falls := range map[string]bool{"cpu": last.CPU < third.CPU, "read": last.Read < third.Read+5e6, "written": last.Written < third.Written, "faults": last.Faults < third.Faults} {
		if falls {
			t.Errorf("%s has fallen: %+v, then %+v", name, third, last)
		}
	}
	if _, ok := s.Sample(Look([]int{-1}), 0, -1); ok {
		t.Error("a process that is not there has a pulse")
	}
}

func TestPace(t *testing.T) {
	for _, c := range [][3]time.Duration{
		{time.Second, 0, time.Second}, {time.Second, time.Millisecond, time.Second}, {time.Second, 5 * time.Millisecond, 5 * time.Second},
		{time.Second, time.Second, time.Minute}, {time.Hour, time.Second, time.Hour},
	} {
		if got := Pace(c[0], c[1]); got != c[2] {
			t.Errorf("at least %s, with a cost of %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// BenchmarkRound takes the pulses of 64 ranks, each with a child.
func BenchmarkRound(b *testing.B) {
	var roots []int
	for range 64 {
		shell := newTalker(b)
		shell.do(b, "sleep 1000 & :")
		roots = append(roots, shell.pid)
	}
	var s Sampler
	for b.Loop() {
		table := Look(roots)
		for i, pid := range roots {
			s.Sample(table, i, pid)
		}
	}
}
