package watchdog

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// KillSignal makes a watchdog kill its agent, and then all processes that the agent has left.
const KillSignal = unix.SIGUSR1

// Unswept is the exit code of an agent that has ended normally, and wants its watchdog to remove what
// may be left of its containers.
const Unswept = 3

// End is the end of the process below a watchdog.
type End struct {
	Inner  bool            // this process is the inner watchdog; its child was the agent
	Status unix.WaitStatus // how the child ended
	Agent  int             // the PID of the agent; 0 if the inner watchdog was killed before it reported the PID
	Left   bool            // this process has other children: those that the child has left behind
}

// Clean reports whether the watchdog has nothing left to do. That is so if its child ended with exit code 0 and left no
// process behind.
func (e End) Clean() bool { return e.Status.Exited() && e.Status.ExitStatus() == 0 && !e.Left }

// ended is what Wait has found in this process.
var ended struct {
	done bool
	end  End
	err  error
}

// Wait makes this process a watchdog, starts the process below it, and waits for the end of that
// process. Later calls return the same End. args has the name of a host and, in the inner watchdog,
// the word Inner after it. With other arguments, Wait returns an error at once.
func Wait(args []string) (End, error) {
	if !ended.done {
		ended.done = true
		ended.end, ended.err = wait(args)
	}
	return ended.end, ended.err
}

// IsWatchdog reports whether these are the arguments of a watchdog.
func IsWatchdog(args []string) bool {
	return len(args) == 1 || len(args) == 2 && args[1] == Inner
}

func wait(args []string) (end End, err error) {
	if !IsWatchdog(args) {
		return end, fmt.Errorf("want the name of a host, got %q", args)
	}
	dog, err := start(args[0], len(args) == 2)
	if err != nil {
		return end, err
	}
	child, err := unix.PidfdOpen(dog.child, 0)
	if err != nil {
		return end, fmt.Errorf("watch process %d: %w", dog.child, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, KillSignal)
	go func() { // the goroutine ends with this process
		for s := range signals {
			forwardSignal(child, s.(syscall.Signal), dog.inner)
		}
	}()
	kept, err := newKeptFiles(dog)
	if err != nil {
		return end, err
	}
	end = End{Inner: dog.inner, Agent: dog.child}
	end.Status, end.Left = reapUntil(dog.child)
	runtime.KeepAlive(dog) // dog.alive must stay open until now
	if !dog.inner && !end.Status.Exited() {
		end.Agent = kept.agentPID()
	}
	return end, nil
}

// forwardSignal sends a signal to the child of a watchdog. KillSignal kills the agent; after any
// other signal the agent ends its ranks in order, with SIGTERM first.
func forwardSignal(child int, s syscall.Signal, isAgent bool) {
	if s == KillSignal {
		_ = unix.PidfdSendSignal(child, unix.SIGCONT, nil, 0) // the child may be stopped
		if isAgent {
			s = unix.SIGKILL
		}
	}
	_ = unix.PidfdSendSignal(child, s, nil, 0)
}

// reapUntil reaps children until the child with that PID has ended. left is true if there are other children, living or
// dead.
func reapUntil(pid int) (status unix.WaitStatus, left bool) {
	for {
		got, err := unix.Wait4(-1, &status, 0, nil)
		if got == pid || errors.Is(err, unix.ECHILD) {
			break
		}
	}
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return status, !errors.Is(err, unix.ECHILD)
}
