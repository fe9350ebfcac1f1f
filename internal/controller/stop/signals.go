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

// signalNow is sent after SIGTERM if a run is to end at once: a second SIGTERM would be
// lost while the first is pending. If both are pending, threads may receive them in either
// order.
const signalNow = unix.SIGPWR

// Order is a request to end a run that did not arrive as a signal of the operating system.
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

// batchSignal is a SIGTERM that the batch system has sent to processes of the run on other nodes.
// This process may get one, too, perhaps later.
type batchSignal struct{}

func (batchSignal) String() string { return "SIGTERM of the batch system" }
func (batchSignal) Signal()        {}

// Batch acts as if the batch system had sent a SIGTERM.
func (s *Signals) Batch() {
	select {
	case s.received <- batchSignal{}:
	default: // there are more than count
	}
}

// Stop acts as if an Order to end the run had come. origin says who has given the order; in
// messages, it follows "cancelled by ".
func (s *Signals) Stop(origin string) {
	select {
	case s.received <- Order{syscall.SIGTERM, origin, false}:
	default: // there are more than count
	}
}

// Catch starts to catch signals. order is a request that came before; nil means none.
func Catch(order *Order) *Signals {
	received := early.Signals()
	if !ossignal.Ignored(signalNow) {
		ossignal.Notify(received, signalNow)
	}
	return &Signals{received: received, order: order}
}

// Dismiss lets every further signal end the process at once. The exit code is the one in the report
// if the run has failed or was cancelled, and otherwise 128 + the number of the signal. Signals
// that came before the call do not count. Without Dismiss, a user could not end gangrun while it
// blocks, for instance while it writes the report to a stopped terminal (Ctrl-S).
func (s *Signals) Dismiss(report *runreport.Report) {
	for len(s.received) > 0 {
		<-s.received
	}
	go func() { // ends with the process
		sig := <-s.received
		for sig == (batchSignal{}) { // it is ending already
			sig = <-s.received
		}
		code := 128 + int(interruption(sig).Signal)
		if report.ExitCode != nil && *report.ExitCode != 0 {
			code = *report.ExitCode
		}
		os.Exit(code)
	}()
}

// interruption returns what a signal means for the supervisor.
func interruption(sig os.Signal) order.Interrupted {
	o, ok := sig.(Order)
	if !ok {
		o.signal = sig.(syscall.Signal)
	}
	return order.Interrupted{Signal: o.signal, By: o.by, Now: o.now}
}

// Contexts returns two contexts. ctx ends with the first signal, or has ended already if
// there was an Order. hurried ends with the second signal, which also calls hurry. After a
// call of stop, signals have no effect.
func (s *Signals) Contexts(hurry func()) (ctx, hurried context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if s.order != nil {
		cancel(interruption(*s.order))
	}
	hurried, endWaits := context.WithCancel(context.Background())
	// SIGPIPE is handled and not ignored: ranks would inherit that it is ignored.
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

// next waits for a signal and ends the run's context. It ignores a SIGTERM if there was an Order,
// because both ask for the same. It also ignores a signal of the batch system if the run is ending
// already.
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
			if sig == signalNow { // another thread has received the SIGTERM before it
				end.Signal, end.Now = syscall.SIGTERM, true
			}
			cancel(end)
			return sig, true
		case <-done:
			return 0, false
		}
	}
}

// Listen takes requests of other machines from the run's directory until stop is called.
// Each counts as a signal.
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
			requests, _ := run.TakeStops(self) // one that cannot be taken is reported where it was made
			for _, q := range requests {
				signals := []syscall.Signal{syscall.SIGTERM}
				if q.Now {
					signals = append(signals, signalNow)
				}
				for _, sig := range signals {
					select {
					case s.received <- Order{sig, Describe(q), q.Now}:
					default: // there are more requests than count
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

// Ignore makes this process ignore the signals that ask for the end of a run, while it ends a run
// itself. A call of restore makes it obey them again.
func Ignore() (restore func()) {
	ignored := make(chan os.Signal, 1)
	ossignal.Notify(ignored, unix.SIGTERM, signalNow)
	return func() { ossignal.Stop(ignored) }
}
