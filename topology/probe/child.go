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

	"github.com/gangrun/gangrun/internal/runclock"
	"github.com/gangrun/gangrun/topology/nvml"
)

// ending says how a child that watches has ended. hung is true if the child was killed because it printed
// nothing for too long. stuck is true if SIGKILL did not end it.
type ending struct {
	why         string
	hung, stuck bool
}

// message is one event, warning or error of a child. An empty message is the end of its output.
type message struct {
	event   nvml.Event
	warning string
	err     error // the child has printed something that is no event
}

// process is a child that watches.
type process struct {
	pid       int
	hold      *os.File // its standard input, which closes when this process ends
	out, says *outlet  // its output and standard error
}

func (p *process) close() {
	_ = p.hold.Close()
	_ = p.out.Close()
	_ = p.says.Close()
}

// start starts gangrun-nvml. Only the caller waits for it.
func (w *watch) start() (*process, error) {
	in, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := newPipe()
	if err != nil {
		_ = hold.Close()
		return nil, err
	}
	says, err := newPipe()
	if err != nil {
		_ = hold.Close()
		out.abandon()
		return nil, err
	}
	p, err := os.StartProcess(w.path, append([]string{w.path, "events"}, w.GPUs...), &os.ProcAttr{
		Files: []*os.File{in, out.w, says.w},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		_ = hold.Close()
		out.abandon()
		says.abandon()
		return nil, err
	}
	started := &process{pid: p.Pid, hold: hold, out: out.r, says: says.r}
	_, _, _ = p.Release(), out.w.Close(), says.w.Close()
	return started, nil
}

// child runs gangrun-nvml until ctx is done, or until gangrun-nvml ends, hangs or prints something
// that is not an event. It returns when gangrun-nvml is gone.
func (w *watch) child(ctx context.Context) ending {
	// PDEATHSIG ends the child with the thread that forked it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := w.start()
	if err != nil {
		return ending{why: fmt.Sprintf("cannot be started: %v", err)}
	}
	defer p.close()
	pid, out, says := p.pid, p.out, p.says

	messages := make(chan message)
	var readers sync.WaitGroup
	readers.Go(func() {
		err := readEvents(out, func(e nvml.Event) { messages <- message{event: e} })
		messages <- message{err: err}
	})
	var last []byte
	readers.Go(func() { last = readWarnings(says, func(text string) { messages <- message{warning: text} }) })

	end, ended := w.listen(ctx, messages), false
	var how unix.WaitStatus
	if end == (ending{}) && ctx.Err() == nil { // its output has ended, so it will end
		ended, _ = wait(ctx, pid, drainTime)
	}
	w.kill(pid) // and its descendants
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
		close(messages)
	}()
	for x := range messages { // the last messages
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
			end.why += " and said " + printed(o)
		}
	}
	return end
}

// listen handles the messages of a child. It returns the zero ending when ctx is done or the child's output
// ends. If the child must be killed, it returns the reason.
func (w *watch) listen(ctx context.Context, messages <-chan message) ending {
	limit := max(w.Start, w.Silence)
	silent := runclock.NewTimer(limit)
	defer silent.Stop()
	take := func(x message) (end ending, ended bool) {
		w.take(x) // may block for long
		switch {
		case x.event.Kind != "":
			limit = w.Silence
			silent.Reset(limit)
		case x.warning != "":
		case x.err != nil:
			return ending{why: "it printed what is no event: " + x.err.Error()}, true
		default:
			return ending{}, true
		}
		return ending{}, false
	}
	for {
		select {
		case x := <-messages:
			if end, ended := take(x); ended {
				return end
			}
		case <-silent.C:
			select {
			case x := <-messages: // the message came in time, but was not read in time
				silent.Reset(w.Silence / 4)
				if end, ended := take(x); ended {
					return end
				}
			default:
				return ending{hung: true, why: fmt.Sprintf("gangrun-nvml has printed nothing for %v and was killed", limit)}
			}
		case <-ctx.Done():
			return ending{}
		}
	}
}

// take handles an event or a warning.
func (w *watch) take(x message) {
	if x.event.Kind != "" {
		w.event(x.event)
	}
	if x.warning != "" {
		w.warning(x.warning)
	}
}
