package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// farRun is a run on the hosts of a bed.
type farRun struct {
	t       testing.TB
	bed     *testhosts.Bed
	gangrun string
	program farProgram
	steps   int
	cmd     *exec.Cmd
	begun   time.Time
	ended   time.Time     // when cmd ended; set when exited is closed
	exited  chan struct{} // is closed when cmd has ended
	errs    lockedBuffer
}

// Most far runs have a gang with two ranks on each of four hosts.
const (
	farHosts = 4
	farRanks = 2 * farHosts
)

// farPatience limits waits for slow things, such as the start of torch.
const farPatience = 2 * patience

// lockedBuffer has the output of a process so far.
type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// letGo lets the ranks end that wait for the file "end".
func (r *farRun) letGo() {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.bed.Shared(), "end"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// startFar starts a gang of a farProgram on the hosts of a bed. The ranks do not end before letGo.
func startFar(t testing.TB, bed *testhosts.Bed, hosts string, program farProgram, steps int, flags ...string) *farRun {
	t.Helper()
	if program.image {
		flags = append(flags, imageFlags(t, bed)...)
	}
	r := startFarCommand(t, bed, hosts, farRanks, program.mpi, heldBack(bed, program.command(t, bed, steps)), flags...)
	r.program, r.steps = program, steps
	return r
}

// startFarCommand starts a gang that runs a command on the hosts of a bed.
func startFarCommand(t testing.TB, bed *testhosts.Bed, hosts string, ranks int, mpi job.MPI, command []string, flags ...string) *farRun {
	t.Helper()
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &farRun{t: t, bed: bed, gangrun: gangrun}
	args := append([]string{"run", "--hosts", hosts, "-n", fmt.Sprint(ranks), "--mpi", string(mpi), "--output", "none", "--preflight", "off"}, flags...)
	args = append(append(args, "--"), command...)
	r.begun = time.Now()
	r.control(args...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gangrun said:\n%s", r.errs.String())
		}
	})
	return r
}

// control starts a gangrun that becomes the controller of the run.
func (r *farRun) control(args ...string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := r.bed.Controller().Command(ctx, append([]string{r.gangrun}, args...)...)
	cmd.Dir = r.bed.Shared()
	cmd.Stderr, cmd.WaitDelay = &r.errs, patience
	if err := cmd.Start(); err != nil {
		cancel()
		r.t.Fatal(err)
	}
	exited := make(chan struct{})
	r.cmd, r.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // the exit code is in ProcessState
		r.ended = time.Now()
	}()
	r.t.Cleanup(func() {
		cancel()
		<-exited
	})
}

// await waits until done returns true. It returns false if gangrun ends before that.
func (r *farRun) await(what string, done func() bool) bool {
	r.t.Helper()
	limit := time.After(farPatience)
	for !done() {
		select {
		case <-r.exited:
			return done()
		case <-limit:
			r.t.Fatalf("%s: not within %s", what, farPatience)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// running waits until every rank has printed so many lines.
func (r *farRun) running(lines int) {
	r.t.Helper()
	if !r.await(fmt.Sprintf("%d lines of every rank", lines), func() bool {
		for rank := range farRanks {
			if bytes.Count(r.log(rank, "out"), []byte{'\n'}) < lines {
				return false
			}
		}
		return true
	}) {
		r.t.Fatal("gangrun has ended before the gang ran")
	}
}

// finish waits for the end of gangrun. It returns the exit code, or 128 + the signal that has ended gangrun.
func (r *farRun) finish() int {
	r.t.Helper()
	select {
	case <-r.exited:
	case <-time.After(farPatience):
		r.t.Fatal("gangrun does not end")
	}
	if status := r.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return r.cmd.ProcessState.ExitCode()
}

// home returns the directory of the run, or "" if there is none yet.
func (r *farRun) home() string {
	dirs, _ := filepath.Glob(filepath.Join(r.bed.Controller().Home(), ".local/state/gangrun/runs/*"))
	if len(dirs) == 0 {
		return ""
	}
	return dirs[len(dirs)-1]
}

// log returns what the log has of one stream of a rank.
func (r *farRun) log(rank int, stream string) []byte {
	data, err := os.ReadFile(filepath.Join(r.home(), "attempts/1", job.LogName(rank, stream)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	return data
}

// whole checks that every log has what its rank has printed, byte for byte. If all is false, lines at the end may be
// missing.
func (r *farRun) whole(all bool) {
	r.t.Helper()
	for rank := range farRanks {
		for _, stream := range []string{"out", "err"} {
			var want bytes.Buffer
			got := r.log(rank, stream)
			if r.program.mpi == job.MPIMPICH && !all {
				got = ucxLine.ReplaceAll(got, nil)
			}
			for i := 1; i <= r.steps && (all || want.Len() < len(got)); i++ {
				text := fmt.Sprintf("step %d/%d", i, r.steps)
				if stream == "err" {
					text = fmt.Sprintf("note %d", i)
				}
				fmt.Fprintf(&want, "rank %d of %d: %s\n", rank, farRanks, text)
			}
			if stream == "err" && r.program.source != farPrograms[0].source && !all {
				got = got[:alike(want.Bytes(), got)] // MPI or torch may have printed something about the end
			}
			if !bytes.HasPrefix(want.Bytes(), got) || all && len(got) != want.Len() {
				r.t.Errorf("rank %d's %s has %d bytes, want %d bytes, and the same ones:\n%s", rank, stream, len(got), want.Len(), got[alike(want.Bytes(), got):])
			}
		}
	}
}

// ucxLine matches a line of UCX, which logs to standard output. MPICH's ranks print such lines when a connection to
// another rank breaks.
var ucxLine = regexp.MustCompile(`(?m)^\[\d+\.\d+\] \[[^\]\n]+\] +\S+:\d+ +UCX +(?:ERROR|WARN|DIAG) .*\n`)

// report returns the report of the run.
func (r *farRun) report() (report runreport.Report) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.home(), "report.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	decode(r.t, data, &report)
	return report
}

// events returns the events of the journal. It returns none if there is no journal yet.
func (r *farRun) events() []job.Event {
	r.t.Helper()
	events, _, err := journal.Replay(filepath.Join(r.home(), "journal.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	return events
}

// since returns the time from t until the first event for which want returns true. It returns -1 if there is no such
// event.
func (r *farRun) since(t time.Time, want func(job.Event) bool) time.Duration {
	for _, e := range r.events() {
		if want(e) {
			return e.Time.Sub(t)
		}
	}
	return -1
}

// processes lists the processes of gangrun and of runs on a host.
func processes(t testing.TB, h *testhosts.Host) (found []string) {
	t.Helper()
	ranks, err := h.Processes("GANGRUN_RUN=")
	all, err2 := h.Processes("")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(ranks, all) {
		own := slices.ContainsFunc([]string{"gangrun", "orted", "mpirun"}, func(name string) bool {
			return strings.HasPrefix(p.Name, name) || strings.HasPrefix(filepath.Base(p.Args[0]), name)
		})
		if text := p.String(); (own || slices.ContainsFunc(ranks, func(o testhosts.Process) bool { return o.PID == p.PID })) && !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}

// nothingLeft waits until no process of the run is left on any host, and returns how long that took. It then checks
// that no leases and no shared memory are left.
func (r *farRun) nothingLeft() time.Duration {
	r.t.Helper()
	begun := time.Now()
	for _, h := range r.bed.Hosts() {
		for left := processes(r.t, h); len(left) > 0; left = processes(r.t, h) {
			if time.Since(begun) > farPatience {
				r.t.Fatalf("left on %s: %q", h.Name(), left)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	took := time.Since(begun)
	for _, h := range r.bed.Hosts() {
		if h.Init() == 0 {
			continue // the host is off, so nothing can be left
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		held, err := h.Exec(ctx, "sh", "-c", "find /run/lock /dev/shm -type f -path '*gangrun*'")
		cancel()
		if err != nil || strings.TrimSpace(held) != "" {
			r.t.Errorf("leases or memory left on %s: %s %v", h.Name(), held, err)
		}
	}
	return took
}
