package probe

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/topology/nvml"
)

// ending is how a child that watches has ended, in words, and whether it was
// killed because it told nothing, or could not even be killed.
type ending struct {
	why         string
	hung, stuck bool
}

// told is one thing that a child has told; none of it is that its output has ended.
type told struct {
	event   nvml.Event
	warning string
	err     error // it has printed what is no event
}

// looks is in how many steps the time is counted in which a child tells nothing.
// Each must pass while this process runs too, so that one that was stopped for
// long does not blame the child.
const looks = 4

// child runs gangrun-nvml until ctx is done, or it ends, hangs or prints what is
// no event, and returns when it is gone.
func (w *watch) child(ctx context.Context) ending {
	in, hold, err := os.Pipe() // its input ends with this process
	if err != nil {
		return ending{why: fmt.Sprintf("cannot be started: %v", err)}
	}
	defer hold.Close()
	defer in.Close()
	from, outTo, err := os.Pipe()
	if err != nil {
		return ending{why: fmt.Sprintf("cannot be started: %v", err)}
	}
	out := &outlet{file: from}
	defer out.Close()
	defer outTo.Close()
	from, saysTo, err := os.Pipe()
	if err != nil {
		return ending{why: fmt.Sprintf("cannot be started: %v", err)}
	}
	says := &outlet{file: from}
	defer says.Close()
	defer saysTo.Close()
	// PDEATHSIG ends the child with the thread that forked it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := os.StartProcess(w.path, append([]string{w.path, "events"}, w.GPUs...), &os.ProcAttr{
		Files: []*os.File{in, outTo, saysTo},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return ending{why: fmt.Sprintf("cannot be started: %v", err)}
	}
	pid := p.Pid
	_ = p.Release() // from here on only this function waits for it
	_, _ = outTo.Close(), saysTo.Close()

	words := make(chan told)
	var readers sync.WaitGroup
	readers.Go(func() {
		err := readEvents(out, func(e nvml.Event) { words <- told{event: e} })
		words <- told{err: err}
	})
	var last []byte
	readers.Go(func() { last = readWarnings(says, func(text string) { words <- told{warning: text} }) })

	end, ended := w.listen(ctx, words), false
	var how unix.WaitStatus
	if end == (ending{}) && ctx.Err() == nil { // its output has ended: so will it
		ended, _ = wait(ctx, pid, drainTime)
	}
	w.kill(pid) // and what it has started
	if !ended {
		ended, _ = wait(context.WithoutCancel(ctx), pid, killTime)
	}
	if ended {
		_, _ = unix.Wait4(pid, &how, 0, nil)
	}
	deadline := time.Now().Add(drainTime)
	_, _ = out.SetReadDeadline(deadline), says.SetReadDeadline(deadline)
	go func() {
		readers.Wait()
		close(words)
	}()
	for x := range words { // what it has told at last
		if ctx.Err() == nil {
			w.take(x)
		}
	}

	o := Output{Stderr: last, Code: how.ExitStatus()}
	if how.Signaled() {
		o.Code, o.Signalled = 128+int(how.Signal()), true
	}
	switch {
	case !ended:
		end.hung, end.stuck = true, true
		end.why = fmt.Sprintf("gangrun-nvml does not end and cannot even be killed; gangrun has left it behind as pid %d", pid)
	case end.hung:
		end.why += after(o)
	case end.why == "":
		if end.why = "it " + outcome(o); len(last) > 0 {
			end.why += " and said " + said(o)
		}
	}
	return end
}

// listen passes on what a child tells until ctx is done, its output ends, which
// are no ending, or it is to be killed.
func (w *watch) listen(ctx context.Context, words <-chan told) ending {
	tick := time.NewTicker(max(w.Silence/looks, time.Millisecond))
	defer tick.Stop()
	limit := max(w.Start, w.Silence)
	silent := time.Duration(0)
	for {
		select {
		case x := <-words:
			w.take(x)
			switch {
			case x.event.Kind != "":
				silent, limit = 0, w.Silence
			case x.warning != "":
			case x.err != nil:
				return ending{why: "it printed what is no event: " + x.err.Error()}
			default:
				return ending{}
			}
		case <-tick.C:
			if silent += max(w.Silence/looks, time.Millisecond); silent >= limit {
				return ending{hung: true, why: fmt.Sprintf("gangrun-nvml has told nothing for %v and was killed", limit)}
			}
		case <-ctx.Done():
			return ending{}
		}
	}
}

// take passes on an event or a warning.
func (w *watch) take(x told) {
	if x.event.Kind != "" {
		w.event(x.event)
	}
	if x.warning != "" {
		w.warning(x.warning)
	}
}
