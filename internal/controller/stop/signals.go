package stop

import (
	"context"
	"os"
	ossignal "os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/early"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/supervisor/order"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// signalNow is sent after SIGTERM if a run must end at once. A second SIGTERM would be lost while the first is pending.
// If SIGTERM and signalNow are both pending, threads may receive them in either order.
const signalNow = unix.SIGPWR

// Order is a request to end a run. It was made by a command such as "gangrun stop", and not by a signal.
type Order struct {
	signal syscall.Signal
	by     string // see Describe
	now    bool   // end the ranks without a grace period
}

// NewOrder returns the Order for a request.
func NewOrder(r home.StopRequest) *Order { return &Order{syscall.SIGTERM, Describe(r), r.Now} }

// String returns who gave the order.
func (o Order) String() string { return o.by }

// Signal makes Order an os.Signal.
func (o Order) Signal() { o.signal.Signal() }

// Signals are the signals that ask a controller to end its run.
type Signals struct {
	received chan os.Signal
	order    *Order
	batch    bool // the batch system has signalled the job's processes on other nodes
}

// batchSignal is a SIGTERM that the batch system has sent to processes of the run on other nodes. This process may also
// receive a SIGTERM, perhaps later.
type batchSignal struct{}

func (batchSignal) String() string { return "SIGTERM of the batch system" }
func (batchSignal) Signal()        {}

// Batch acts as if the batch system had sent a SIGTERM.
func (s *Signals) Batch() {
	select {
	case s.received <- batchSignal{}:
	default: // further signals would have no effect
	}
}

// Stop acts as if an Order to end the run had arrived. origin says who has given the order; in messages, it follows
// "cancelled by ".
func (s *Signals) Stop(origin string) {
	select {
	case s.received <- Order{syscall.SIGTERM, origin, false}:
	default: // further signals would have no effect
	}
}

// Catch starts to catch signals. order is a request that arrived before; nil if there was none.
func Catch(order *Order) *Signals {
	received := early.Signals()
	if !ossignal.Ignored(signalNow) {
		ossignal.Notify(received, signalNow)
	}
	return &Signals{received: received, order: order}
}

// Dismiss lets every further signal end the process at once. The exit code is the one in the report if the run has
// failed or was cancelled, and otherwise 128 + the number of the signal. Signals that arrived before the call do not
// count. Without Dismiss, a user could not end gangrun while it blocks, for instance while it writes the report to a
// stopped terminal (Ctrl-S).
func (s *Signals) Dismiss(report *runreport.Report) {
	for len(s.received) > 0 {
		<-s.received
	}
	go func() { // the goroutine ends with the process
		sig := <-s.received
		for sig == (batchSignal{}) { // the process is ending already
			sig = <-s.received
		}
		code := 128 + int(interruption(sig).Signal)
		if report.ExitCode != nil && *report.ExitCode != 0 {
			code = *report.ExitCode
		}
		os.Exit(code)
	}()
}

// interruption returns the meaning of a signal for the supervisor.
func interruption(sig os.Signal) order.Interrupted {
	o, ok := sig.(Order)
	if !ok {
		o.signal = sig.(syscall.Signal)
	}
	return order.Interrupted{Signal: o.signal, By: o.by, Now: o.now}
}

// Contexts returns two contexts. ctx ends with the first signal. If there was an Order, ctx has ended already, and a
// SIGTERM is ignored, because it asks for the same. At the second signal, hurried ends and hurry is called. After
// an Order, a single signalNow does this; "gangrun stop --now" sends it. After a call of stop, signals have no effect.
func (s *Signals) Contexts(hurry func()) (ctx, hurried context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if s.order != nil {
		cancel(interruption(*s.order))
	}
	hurried, endWaits := context.WithCancel(context.Background())
	// SIGPIPE is handled and not ignored, because ranks would inherit that it is ignored.
	broken := make(chan os.Signal, 1)
	ossignal.Notify(broken, syscall.SIGPIPE)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		sig, ok := s.next(done, false, cancel)
		if ok && (s.order == nil || sig != signalNow) {
			_, ok = s.next(done, true, cancel)
		}
		if ok {
			hurry()
			endWaits()
		}
	})
	return ctx, hurried, func() {
		close(done)
		wg.Wait()
		cancel(nil)
		endWaits()
	}
}

// next waits for a signal, and then ends the run's context. If there was an Order, next ignores a SIGTERM, because both
// ask for the same. If the run is ending already, next also ignores a signal of the batch system.
func (s *Signals) next(done <-chan struct{}, ending bool, cancel context.CancelCauseFunc) (sig syscall.Signal, ok bool) {
	for {
		select {
		case received := <-s.received:
			if _, ok := received.(batchSignal); ok {
				if s.batch || s.order != nil || ending {
					continue
				}
				s.batch, received = true, syscall.SIGTERM
			} else if s.batch && received == syscall.SIGTERM {
				continue
			}
			end := interruption(received)
			if sig = end.Signal; s.order != nil && sig == syscall.SIGTERM {
				continue
			}
			if sig == signalNow { // another thread has received the SIGTERM before this signal
				end.Signal, end.Now = syscall.SIGTERM, true
			}
			cancel(end)
			return sig, true
		case <-done:
			return 0, false
		}
	}
}

// Listen takes requests from other machines out of the run's directory until stop is called. Each request counts as a
// signal.
func (s *Signals) Listen(run home.Run) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		self := home.Self()
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			requests, _ := run.TakeStops(self) // the asking process reports a request that cannot be taken
			for _, q := range requests {
				signals := []syscall.Signal{syscall.SIGTERM}
				if q.Now {
					signals = append(signals, signalNow)
				}
				for _, sig := range signals {
					select {
					case s.received <- Order{sig, Describe(q), q.Now}:
					default: // further requests would have no effect
					}
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// Ignore makes this process ignore the signals that ask for the end of a run, while the process itself ends a run.
// After a call of restore, the process obeys these signals again.
func Ignore() (restore func()) {
	ignored := make(chan os.Signal, 1)
	ossignal.Notify(ignored, unix.SIGTERM, signalNow)
	return func() { ossignal.Stop(ignored) }
}
