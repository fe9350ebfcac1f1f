package early

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Ending has the signals that ask gangrun to end.
var Ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// commands are those that end with a documented code whenever they are asked to end.
var commands = []string{"run", "preflight", "mpiexec"}

// caught are the signals of a process that is one of the commands; nil of any other.
var caught *signals

// signals end the process with the code of the first that comes, until they are taken.
type signals struct {
	from  chan os.Signal
	taken chan struct{}
	once  sync.Once
	wg    sync.WaitGroup
}

func catch() *signals {
	s := &signals{from: Notify(), taken: make(chan struct{})}
	s.wg.Go(func() { // ends when they are taken, or with the process
		select {
		case sig := <-s.from:
			os.Exit(128 + int(sig.(syscall.Signal)))
		case <-s.taken:
		}
	})
	return s
}

// Notify returns a channel that gets the signals that ask for an end from now on, except those
// that this process ignores, for instance under nohup or as a shell's background job.
func Notify() chan os.Signal {
	from := make(chan os.Signal, 4)
	for _, sig := range Ending {
		if !signal.Ignored(sig) {
			signal.Notify(from, sig)
		}
	}
	return from
}

// Signals returns the channel on which signals arrive. From then on the caller handles them.
// Before the call, a signal ends the process.
func Signals() chan os.Signal {
	if caught == nil {
		return Notify()
	}
	caught.once.Do(func() { close(caught.taken) })
	caught.wg.Wait()
	return caught.from
}
