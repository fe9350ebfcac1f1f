package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// maxMemory limits the peak memory of the controller, watchdogs and agents together, in bytes, however much the ranks
// print. Pages of the program file, which the processes share, count once.
const maxMemory = 100e6

// noise returns size bytes of bad output: lines of all lengths, progress bars, NUL bytes, broken UTF-8, and no newline
// at the end. It depends only on the seed.
func noise(seed uint64, size int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	data := make([]byte, 0, size+1)
	for n := 0; len(data) < size; n++ {
		switch random.IntN(8) {
		case 0:
			data = fmt.Appendf(data, "step %d/1000 loss %f\n", n%1000, random.Float64())
		case 1:
			data = fmt.Appendf(data, "\r%3d%%|####    | %d it/s", n%100, n)
		case 2:
			data = append(data, '\n')
		default:
			length := random.IntN(120)
			if random.IntN(500) == 0 {
				length = random.IntN(200_000)
			}
			for range length {
				data = append(data, byte(random.Uint32()))
			}
			data = append(data, '\n')
		}
	}
	return append(data[:size], 'x')
}

// flood is a gang of eight ranks that print noise again and again, to both streams at the same time.
type flood struct {
	*bench
	out, err [8][]byte // what each rank prints once
	times    int
}

// newFlood returns a gang that prints about total bytes.
func newFlood(t testing.TB, total int) *flood {
	const once = 1e6
	f := &flood{bench: newBench(t)}
	f.times = total / len(f.out) / (once + once/4)
	for rank := range f.out {
		f.out[rank], f.err[rank] = noise(uint64(2*rank), once), noise(uint64(2*rank+1), once/4)
		for name, data := range map[string][]byte{"out": f.out[rank], "err": f.err[rank]} {
			if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("%s.%d", name, rank)), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// bytes returns how much the gang prints.
func (f *flood) bytes() (total int64) {
	for rank := range f.out {
		total += int64(f.times) * int64(len(f.out[rank])+len(f.err[rank]))
	}
	return total
}

// script returns the shell script of each rank.
func (f *flood) script() string {
	again := func(what string) string {
		return fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s; i=$((i+1)); done", f.times, what)
	}
	return "{ " + again("cat out.$RANK") + "; } & " + again("cat err.$RANK >&2") + "; wait"
}

// start starts the gang.
func (f *flood) start(stdout *os.File, options ...string) *controlled {
	return f.bench.start(stdout, append(options, "--preflight", "off", "--loopback", "2", "-n", strconv.Itoa(len(f.out)), "--", "sh", "-c", f.script())...)
}

// check compares every log with what its rank has printed.
func (f *flood) check() {
	f.t.Helper()
	attempts := f.status().Attempts
	if len(attempts) != 1 {
		f.t.Fatalf("%d attempts, want 1", len(attempts))
	}
	for rank := range f.out {
		for name, want := range map[string][]byte{"out": f.out[rank], "err": f.err[rank]} {
			if err := f.same(filepath.Join(attempts[0].Logs, job.LogName(rank, name)), want); err != nil {
				f.t.Errorf("rank %d: the log of its std%s: %v", rank, name, err)
			}
		}
	}
}

// same checks that a file has a piece so many times, and nothing else.
func (f *flood) same(path string, piece []byte) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	got := make([]byte, len(piece))
	for i := range f.times {
		if _, err := io.ReadFull(file, got); err != nil {
			return fmt.Errorf("it ends in piece %d of %d: %w", i+1, f.times, err)
		}
		if !bytes.Equal(got, piece) {
			return fmt.Errorf("piece %d of %d differs", i+1, f.times)
		}
	}
	if n, err := io.Copy(io.Discard, file); n > 0 || err != nil {
		return fmt.Errorf("%d bytes too many, %v", n, err)
	}
	return nil
}

// rate returns how fast the output of the ranks got into the files, in bytes per second, from the start of the first
// rank to the end of the last.
func (f *flood) rate() float64 {
	f.t.Helper()
	var begin, end time.Time
	for _, e := range f.events() {
		switch {
		case e.Kind == job.KindStarted && begin.IsZero():
			begin = e.Time
		case e.Kind == job.KindExit:
			end = e.Exit.Time
		}
	}
	if begin.IsZero() || !end.After(begin) {
		f.t.Fatalf("the ranks ran from %s to %s", begin, end)
	}
	return float64(f.bytes()) / end.Sub(begin).Seconds()
}

// memory measures how much memory gangrun uses, until the returned function is called. That function returns the sum
// of the peaks of all processes in bytes. Pages of files count only once, because all processes share them, and the
// kernel decides how many it maps into each process.
func (r *controlled) memory() func() int64 {
	done := make(chan struct{})
	peaks := map[int]int64{} // by PID, without the pages of files
	var files int64          // the most pages of files that a process had, in bytes
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			found := r.tree()
			for _, pid := range append(slices.Concat(found.agents, found.watchdogs, found.outer), r.cmd.Process.Pid) {
				// The latest peak is the highest. The exception is a process that is just being started: it still has
				// the peak of its parent.
				if peak, mapped := highWater(pid); peak > 0 {
					peaks[pid] = peak - mapped
					files = max(files, mapped)
				}
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return func() (sum int64) {
		close(done)
		wg.Wait()
		for _, peak := range peaks {
			sum += peak
		}
		return sum + files
	}
}

// highWater returns the peak of the resident memory of a process, and how much of its memory is pages of files, both
// in bytes. It returns 0 if the process is gone.
func highWater(pid int) (peak, files int64) {
	data, _ := os.ReadFile(proc(pid, "status"))
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		switch name {
		case "VmHWM":
			peak = kib << 10
		case "RssFile":
			files = kib << 10
		}
	}
	return peak, files
}

// TestOutput checks that the logs have what the ranks have printed, byte for byte. gangrun must not need more memory
// if the ranks print more.
func TestOutput(t *testing.T) {
	for _, total := range []int{40e6, 200e6} {
		t.Run(fmt.Sprintf("%dMB", total/1e6), func(t *testing.T) {
			f := newFlood(t, total)
			r := f.start(nil)
			peak := r.memory()
			code, memory := r.finish(), peak()
			t.Logf("%d MB at %.0f MB/s, peak memory %.0f MB", f.bytes()/1e6, f.rate()/1e6, float64(memory)/1e6)
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

// counted reads what gangrun shows of ranks that print numbers. It returns the last number of each rank. No number may
// be missing.
func counted(t *testing.T, from io.Reader, ranks int) []int {
	t.Helper()
	line := regexp.MustCompile(`^\[(\d+) h\d+\](\+?) +(\d+)$`)
	last, broken := make([]int, ranks), make([]string, ranks)
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		m := line.FindStringSubmatch(scanner.Text())
		if m == nil {
			t.Fatalf("unexpected on the screen: %q", scanner.Text())
		}
		rank, _ := strconv.Atoi(m[1])
		text := m[3]
		if m[2] == "+" { // the rest of a line whose beginning was shown before
			text = broken[rank] + text
		}
		broken[rank] = text
		switch n, _ := strconv.Atoi(text); {
		case n == last[rank]+1:
			last[rank] = n
		case !strings.HasPrefix(strconv.Itoa(last[rank]+1), text):
			t.Fatalf("rank %d: %q follows %d", rank, text, last[rank])
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return last
}

// TestStoppedStdout does not read gangrun's standard output until the ranks have ended. The ranks must end all the
// same, and then all output must arrive.
func TestStoppedStdout(t *testing.T) {
	t.Parallel()
	const ranks, lines = 4, 400_000
	stdout, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	r := newBench(t).start(w, "--output", "all", "--preflight", "off", "--loopback", "2", "-n", strconv.Itoa(ranks), "--", "seq", strconv.Itoa(lines))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	peak := r.memory()
	r.journalled("the end of the gang", func(e job.Event) bool {
		return e.Kind == job.KindOutcome && e.Outcome.Good(ranks)
	})
	if list := r.list(); len(list) != 1 || list[0].State != job.StateSucceeded && list[0].State != job.StateRunning {
		t.Errorf("gangrun ps tells %+v while standard output is stopped", list)
	}
	for rank, last := range counted(t, stdout, ranks) {
		if last != lines {
			t.Errorf("rank %d: %d lines arrived, want %d", rank, last, lines)
		}
	}
	if code := r.finish(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if memory := peak(); memory > maxMemory {
		t.Errorf("peak memory %d MB, want at most %.0f", memory/1e6, maxMemory/1e6)
	} else {
		t.Logf("peak memory %d MB", memory/1e6)
	}
}
