package agent

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/watchdog"
)

// watch is the watchdog: it starts the agent, unless that is done, and waits for
// it. When the agent
// has ended, whatever is left of its processes is a child of the watchdog, the
// next subreaper above, and is killed.
func watch(args []string) error {
	dog, err := watchdog.Start(args)
	if err != nil {
		return err
	}
	pid := dog.Agent
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, KillSignal)
	go func() {
		// Ends with the process. The agent ends its ranks in order.
		for s := range signals {
			if s == KillSignal {
				s = unix.SIGKILL
			}
			_ = unix.Kill(pid, s.(syscall.Signal))
		}
	}()
	go keepFiles(dog.Keep) // ends with the agent, and what it keeps with the process
	status := reapUntil(pid)
	sweep(pid)
	removeShortLived(pid)
	removeDeadLayers()
	removeDeadCgroups()
	if status.Exited() && status.ExitStatus() == 0 {
		return nil
	}
	return fmt.Errorf("the agent ended with status %#x", uint32(status))
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

// sweep kills and reaps everything that is left below this process, and
// removes the cgroup of the agent that had that PID.
func sweep(agent int) {
	group := openCgroup(agent)
	for deadline := time.Now().Add(killLimit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.ECHILD {
			break
		}
		if pid > 0 {
			continue
		}
		group.kill()
		for _, p := range descendants(os.Getpid()) {
			p.send(unix.SIGKILL)
		}
	}
	group.close()
}
