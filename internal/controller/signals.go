package controller

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/gangrun/gangrun/internal/early"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// catch returns the signals that ask for an end, from now on.
func catch() chan os.Signal {
	signals := early.Signals()
	if !signal.Ignored(signalNow) {
		signal.Notify(signals, signalNow)
	}
	return signals
}

// dismiss has every further signal end the process at once: with the code of a run that
// has failed or was cancelled, else with that of the signal. What is left to do may take for ever: a stopped terminal takes
// no report. Signals that have come before count no more.
func dismiss(signals chan os.Signal, report *runreport.Report) {
	for len(signals) > 0 {
		<-signals
	}
	go func() { // ends with the process
		code := 128 + int(interruption(<-signals).Signal)
		if report.ExitCode != nil && *report.ExitCode != 0 {
			code = *report.ExitCode
		}
		os.Exit(code)
	}()
}

// interruptible returns a context that ends with the first signal that asks for an
// end, or has ended where that is the order; the second ends the gang at once, and
// every wait for the terminal. After stop they do nothing.
func (s *session) interruptible() (ctx, hurried context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if s.order != nil {
		cancel(interruption(*s.order))
	}
	hurried, hurry := context.WithCancel(context.Background())
	// Handled and not ignored: ranks would inherit that.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		next := func() (sig syscall.Signal, ok bool) {
			for {
				select {
				case by := <-s.signals:
					end := interruption(by)
					if sig = end.Signal; s.order == nil || sig != syscall.SIGTERM {
						if sig == signalNow { // another thread has taken the SIGTERM before it
							end.Signal = syscall.SIGTERM
						}
						cancel(end)
						return sig, true
					} // who sends that wants what is ordered
				case <-done:
					return 0, false
				}
			}
		}
		sig, ok := next()
		if ok && (s.order == nil || sig != signalNow) {
			_, ok = next()
		}
		if ok {
			s.launcher.Hurry()
			hurry()
		}
	})
	return ctx, hurried, func() {
		close(done)
		wg.Wait()
		cancel(nil)
		hurry()
	}
}
