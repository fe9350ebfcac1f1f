package stacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/faulthandler"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// pySpy reads the Python frames of a process with py-spy. py-spy does not stop the process, so frames of a
// process that runs may be wrong. Frames of a process that hangs are right, because they do not change. The
// text says why there are no frames.
func (c *Collector) pySpy(ctx context.Context, p *proc, path string) (frames, string) {
	if path == "" {
		return nil, "py-spy is not installed"
	}
	out, err := c.run(ctx, path, "dump", "--pid", strconv.Itoa(p.pid), "--nonblocking", "--json")
	if got := p.parsePySpy(out); len(got) > 0 {
		return got, ""
	}
	return nil, refused(string(job.StackPySpy), out, err)
}

// parsePySpy reads the JSON of "py-spy dump --json", which may follow warnings.
func (p *proc) parsePySpy(out string) frames {
	if i := strings.Index("\n"+out, "\n[\n"); i >= 0 { // a warning line begins with "[" and the time
		out = out[i:]
	}
	var threads []struct {
		Thread uint64 `json:"thread_id"`    // the result of pthread_self(3)
		TID    *int   `json:"os_thread_id"` // null if py-spy does not know
		Frames []struct {
			Name string `json:"name"`
			File string `json:"filename"`
			Line int    `json:"line"`
		} `json:"frames"`
	}
	if json.NewDecoder(strings.NewReader(out)).Decode(&threads) != nil {
		return nil
	}
	got := frames{}
	for _, t := range threads {
		tid := 0
		if t.TID != nil {
			tid = *t.TID
		} else {
			tid = p.threadAt(t.Thread, got)
		}
		for _, f := range t.Frames[:min(len(t.Frames), maxFrames)] {
			got[tid] = append(got[tid], job.Frame{Function: f.Name, File: f.File, Line: f.Line})
		}
	}
	delete(got, 0)
	return got
}

// threadAt returns the TID of the thread for which pthread_self(3) returns id, or 0. With the GNU C library
// and with musl, id is an address at the upper end of the thread's stack. So threadAt returns the thread with
// the highest stack pointer below id. It ignores the main thread, whose ID is elsewhere, the threads that
// run, whose stack pointers are not known, and the threads in taken.
func (p *proc) threadAt(id uint64, taken frames) int {
	const largest = 1 << 30 // the largest stack that is expected, in bytes
	tid, least := 0, uint64(largest)
	for candidate, sp := range p.sp {
		if _, no := taken[candidate]; !no && candidate != p.pid && sp < id && id-sp < least {
			tid, least = candidate, id-sp
		}
	}
	return tid
}

// Limits for a Python process that is asked for its stacks by a signal.
const (
	faultsLimit = 2 * time.Second
	faultsEvery = 5 * time.Millisecond
	faultsBytes = 1 << 20
)

// registered reports whether the process handles the signal of faulthandler, and has file open.
func (p *proc) registered(file string) bool {
	return p.same() && process.Handles(p.pid, faulthandler.Signal) && p.holds(file)
}

// faults asks a Python process for its stacks by a signal, if it handles that signal and has file open. The
// process goes on. The kernel restarts most system calls that the signal interrupts, and Python's own
// functions go on waiting. But sleep(3) and similar functions in C return early. The text says why there are
// no frames.
func (c *Collector) faults(ctx context.Context, file string, p *proc) (frames, string) {
	bit := uint64(1) << (faulthandler.Signal - 1)
	switch {
	case file == "":
		return nil, "the program has not been told to write its stacks (--faulthandler)"
	case p.threads[0].State != job.ProcessRunning && p.threads[0].State != job.ProcessSleeping:
		return nil, "no signal reaches the main thread"
	case !p.registered(file):
		return nil, "the program has not registered faulthandler, as it does for --faulthandler unless Python was started with -I, -E or -S"
	}
	f, err := os.OpenFile(file, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err.Error()
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil { // Python appends to the file
		return nil, err.Error()
	}
	switch {
	case !p.registered(file): // look again just before the signal, which would end another program
		return nil, "the process has executed another program"
	case mask(p.pid, p.pid, "SigBlk")&bit != 0:
		return nil, "the main thread blocks the signal of faulthandler"
	}
	if err := unix.Tgkill(p.pid, p.pid, faulthandler.Signal); err != nil {
		return nil, fmt.Sprintf("signal process %d: %v", p.pid, err)
	}
	threads, err := p.await(ctx, f, bit)
	if len(threads) == 0 {
		return nil, err.Error()
	}
	got := frames{}
	for _, t := range threads {
		tid := p.pid
		if !t.Current {
			tid = p.threadAt(t.ID, got)
		}
		if tid == 0 {
			tid = p.busy(got)
		}
		got[tid] = append(got[tid], t.Frames...)
	}
	delete(got, 0)
	return got, ""
}

var errSilent = errors.New("Python has not written its stacks in time")

// await reads the stacks that Python writes, until they are complete. While the main thread runs the signal
// handler, the kernel blocks the signal for that thread; bit is the bit of the signal in the mask.
func (p *proc) await(ctx context.Context, f io.ReaderAt, bit uint64) ([]faulthandler.Thread, error) {
	ctx, cancel := context.WithTimeout(ctx, faultsLimit)
	defer cancel()
	every := time.NewTicker(faultsEvery)
	defer every.Stop()
	for {
		handled := !pending(p.pid, p.pid, faulthandler.Signal) && mask(p.pid, p.pid, "SigBlk")&bit == 0
		data, err := io.ReadAll(io.NewSectionReader(f, 0, faultsBytes))
		if err != nil {
			return nil, err
		}
		threads := faulthandler.Parse(data)
		if handled && slices.ContainsFunc(threads, func(t faulthandler.Thread) bool { return t.Current }) {
			return threads, nil
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return threads, errSilent
		}
	}
}

// busy returns the TID of a thread that waits in no system call and is not in taken, or 0. If there are
// several, it returns that of the newest thread, because Python writes the newest threads first.
func (p *proc) busy(taken frames) int {
	for _, t := range slices.Backward(p.threads) {
		_, known := p.sp[t.TID]
		if _, no := taken[t.TID]; !known && !no && t.TID != p.pid {
			return t.TID
		}
	}
	return 0
}

// holds reports whether a process has file open. It compares the name in the kernel's link, so it asks no
// file system. It ignores the directories above the file's own, because they may have other names in a
// container.
func (p *proc) holds(file string) bool {
	links, _ := filepath.Glob(procfs.Path(p.pid, "fd/*"))
	return slices.ContainsFunc(links, func(link string) bool {
		to, _ := os.Readlink(link)
		return filepath.Base(to) == filepath.Base(file)
	})
}
