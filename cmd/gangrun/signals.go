package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// catch returns the signals that ask for an end, from now on.
func catch() chan os.Signal {
	signals := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, signalNow} {
		if !signal.Ignored(sig) { // nohup, or a shell's background job
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// interruptible returns a context that ends with the first signal that asks for an
// end, or has ended where that is the order; the second ends the gang at once, and
// every wait for the terminal. stop gives the signals back.
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
		signal.Stop(s.signals)
		cancel(nil)
		hurry()
	}
}
