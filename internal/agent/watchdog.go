package agent

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/box"
	"github.com/gangrun/gangrun/internal/agent/cgroup"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/watchdog"
)

// watch is a watchdog. It starts the process below it, unless that was done before, and waits
// for it. Processes that outlive the agent become children of the watchdog, which is the next
// subreaper above. The inner watchdog kills them; the outer one does if the inner one was
// killed. watch returns the exit code.
func watch(args []string) (code int, err error) {
	dog, err := watchdog.Start(args)
	if err != nil {
		return 70, err
	}
	child, err := unix.PidfdOpen(dog.Child, 0)
	if err != nil {
		return 70, fmt.Errorf("watch process %d: %w", dog.Child, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, KillSignal)
	go func() { // ends with the process
		for s := range signals {
			forwardSignal(child, s.(syscall.Signal), dog.Inner)
		}
	}()
	kept, err := newKeptFiles(dog)
	if err != nil {
		return 70, err
	}
	status := reapUntil(dog.Child)
	agent := dog.Child
	if !dog.Inner {
		if status.Exited() { // the inner watchdog has already cleaned up
			return status.ExitStatus(), nil
		}
		agent = kept.agentPID()
		reapOrphan(agent)
	}
	sweep(agent)
	tempfiles.Remove(agent)
	tempfiles.RemoveUnlocked(layerPrefix, os.Remove)
	box.EndDead()
	cgroup.EndDead()
	switch {
	case status.Exited():
		return status.ExitStatus(), nil
	case dog.Inner:
		return 70, fmt.Errorf("the agent was ended by signal %d", status.Signal())
	default:
		return 70, errors.New("the watchdog below this one was killed")
	}
}

// forwardSignal sends a signal to the child of a watchdog. KillSignal kills the agent; after any
// other signal the agent ends its ranks in order, with SIGTERM first.
func forwardSignal(child int, s syscall.Signal, isAgent bool) {
	if s == KillSignal {
		_ = unix.PidfdSendSignal(child, unix.SIGCONT, nil, 0) // it may be stopped
		if isAgent {
			s = unix.SIGKILL
		}
	}
	_ = unix.PidfdSendSignal(child, s, nil, 0)
}

// reapUntil reaps children until the one with that PID has ended.
func reapUntil(pid int) unix.WaitStatus {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		if got == pid || err == unix.ECHILD {
			return status
		}
	}
}

// orphanLimit bounds the end of an agent whose inner watchdog was killed: it has
// endLimit for its ranks, and as long again to clean up.
const orphanLimit = 2 * endLimit

// reapOrphan waits for the end of an agent that has become a child of this process. The agent
// ends its ranks because its own watchdog is gone.
func reapOrphan(agent int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(orphanLimit); time.Now().Before(deadline); <-tick.C {
		if p, ok := process.Read(agent); !ok || p.Parent != os.Getpid() || p.Zombie {
			return
		}
		var status unix.WaitStatus
		if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); pid == agent || err == unix.ECHILD {
			return
		}
	}
}

// sweep kills and reaps everything that is left below this process, and
// removes the cgroup of the agent that had that PID.
func sweep(agent int) {
	group := cgroup.Open(agent)
	for deadline := time.Now().Add(process.KillLimit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.ECHILD {
			break
		}
		if pid > 0 {
			continue
		}
		process.KillRound(group)
	}
	group.Close()
}
