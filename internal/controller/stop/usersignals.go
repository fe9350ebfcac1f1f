package stop

import (
	"os"
	ossignal "os/signal"
	"sync"
	"syscall"
)

// UserSignals calls handle for each SIGUSR1 and SIGUSR2 that this process gets, one at a time,
// until stop is called.
func UserSignals(handle func(syscall.Signal)) (stop func()) {
	received := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
		if !ossignal.Ignored(sig) {
			ossignal.Notify(received, sig)
		}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case sig := <-received:
				handle(sig.(syscall.Signal))
			case <-done:
				return
			}
		}
	})
	return func() {
		ossignal.Stop(received)
		close(done)
		wg.Wait()
	}
}
