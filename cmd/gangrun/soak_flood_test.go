//go:build soak

package main_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// ownSpeed returns how fast the ranks of a flood write to files without gangrun, in bytes per second.
func (f *flood) ownSpeed() float64 {
	f.t.Helper()
	var wg sync.WaitGroup
	start := time.Now()
	for rank := range f.out {
		cmd := exec.Command("sh", "-c", f.script())
		cmd.Dir, cmd.Env = f.dir, append(os.Environ(), "RANK="+strconv.Itoa(rank))
		out, errs := f.create(fmt.Sprintf("own.%d.out", rank)), f.create(fmt.Sprintf("own.%d.err", rank))
		cmd.Stdout, cmd.Stderr = out, errs
		wg.Go(func() {
			defer out.Close()
			defer errs.Close()
			if err := cmd.Run(); err != nil {
				f.t.Error(err)
			}
		})
	}
	wg.Wait()
	speed := float64(f.bytes()) / time.Since(start).Seconds()
	paths, _ := filepath.Glob(filepath.Join(f.dir, "own.*"))
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			f.t.Fatal(err)
		}
	}
	return speed
}

// fast is the speed that gangrun must reach if the disk is fast enough, in bytes per second.
const fast = 300e6

// TestSoakOutput lets eight ranks print 2 GB as fast as possible. gangrun must not need more memory than for little
// output.
func TestSoakOutput(t *testing.T) {
	f := newFlood(t, 2e9)
	own := f.ownSpeed()
	r := f.start(nil)
	peak := r.memory()
	code, memory := r.finish(), peak()
	t.Logf("%d MB at %.0f MB/s, peak memory %d MB; the files alone take %.0f MB/s", f.bytes()/1e6, f.rate()/1e6, memory/1e6, own/1e6)
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if memory > maxMemory {
		t.Errorf("peak memory %d MB, want at most %.0f", memory/1e6, maxMemory/1e6)
	}
	if f.rate() < min(fast, own) {
		t.Errorf("%.0f MB/s, want at least %.0f", f.rate()/1e6, min(fast, own)/1e6)
	}
	f.check()
}

// TestSoakStoppedStdout does not read gangrun's standard output for 30 s, while ranks print 200 MB or 2 GB. The ranks
// must end meanwhile, and then all output must arrive.
func TestSoakStoppedStdout(t *testing.T) {
	for _, total := range []int{200e6, 2e9} {
		t.Run(fmt.Sprintf("%dMB", total/1e6), func(t *testing.T) {
			f := newFlood(t, total)
			stdout, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdout.Close()
			start := time.Now()
			r := f.start(w, "--output", "all")
			peak := r.memory()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r.journalled("the end of the gang", func(e job.Event) bool {
				return e.Kind == job.KindOutcome && e.Outcome.Good(len(f.out))
			})
			r.await("30 s", func() bool { return time.Since(start) >= 30*time.Second })
			var shown int64
			for buffer := make([]byte, 1<<20); ; {
				n, err := stdout.Read(buffer)
				shown += int64(n)
				if err != nil {
					break
				}
			}
			code, memory := r.finish(), peak()
			t.Logf("%d MB at %.0f MB/s into the files, %d MB shown after %s, peak memory %d MB", f.bytes()/1e6, f.rate()/1e6, shown/1e6, time.Since(start).Round(time.Second), memory/1e6)
			if code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if memory > maxMemory {
				t.Errorf("peak memory %d MB, want at most %.0f", memory/1e6, maxMemory/1e6)
			}
			f.check()
		})
	}
}

// TestSoakStoppedAgent stops an agent. gangrun must notice that in the end, and no process may be left.
func TestSoakStoppedAgent(t *testing.T) {
	r := newBench(t).start(nil, "--retries", "0", "--preflight", "off", "--loopback", "2", "-n", "4", "--", "sh", "-c", sleeper)
	r.files("ready", 4)
	stopped := time.Now()
	if !r.strike(r.tree().agents[0], unix.SIGSTOP) {
		t.Fatal("the agent is gone")
	}
	code := r.finish()
	t.Logf("found out after %s: %s", time.Since(stopped).Round(time.Millisecond), r.cmd.ProcessState)
	if left := r.marked()[ownMark]; len(left) > 0 {
		t.Errorf("left when gangrun had ended: %v", slices.Collect(maps.Values(left)))
	}
	s := r.status()
	if code != 75 || s.State != job.StateFailed || s.Cause() == nil || s.Cause().Category != job.HostLost {
		t.Errorf("exit code %d, state %s, cause %+v; want 75, failed, a lost host", code, s.State, s.Cause())
	}
	if left := r.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSoakSilence checks that gangrun does not end a gang that prints nothing for more than a minute.
func TestSoakSilence(t *testing.T) {
	r := newBench(t).start(nil, "--retries", "0", "--preflight", "off", "--loopback", "2", "-n", "2", "--", "sleep", "75")
	select {
	case <-r.exited:
	case <-time.After(2 * patience):
		t.Fatal("it does not end")
	}
	if s := r.status(); s.State != job.StateSucceeded || len(s.Attempts) != 1 {
		t.Errorf("state %s after %d attempts, want success at once", s.State, len(s.Attempts))
	}
}
