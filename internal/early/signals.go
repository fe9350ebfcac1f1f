package early

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Ending has the signals that ask gangrun to end.
var Ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// commands has the commands that end with a documented code if they are asked to end.
var commands = []string{"run", "preflight", "mpiexec"}

// caught has the signals of this process if the process is one of the commands. Otherwise it is nil.
var caught *signals

// signals ends the process at the first signal, with the exit code for that signal, until Signals is called.
type signals struct {
	from  chan os.Signal
	taken chan struct{}
	once  sync.Once
	wg    sync.WaitGroup
}

func catch() *signals {
	s := &signals{from: Notify(), taken: make(chan struct{})}
	s.wg.Go(func() { // the goroutine ends when the signals are taken, or with the process
		select {
		case sig := <-s.from:
			os.Exit(128 + int(sig.(syscall.Signal)))
		case <-s.taken:
		}
	})
	return s
}

// Notify returns a channel. From now on, the channel gets the signals that ask for an end, except those that this
// process ignores, for instance under nohup or as a background job of a shell.
func Notify() chan os.Signal {
	from := make(chan os.Signal, 4)
	for _, sig := range Ending {
		if !signal.Ignored(sig) {
			signal.Notify(from, sig)
		}
	}
	return from
}

// Signals returns the channel on which signals arrive. After the call, the caller handles them. Before the call, a
// signal ends the process.
func Signals() chan os.Signal {
	if caught == nil {
		return Notify()
	}
	caught.once.Do(func() { close(caught.taken) })
	caught.wg.Wait()
	return caught.from
}
