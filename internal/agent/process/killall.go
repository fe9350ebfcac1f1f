package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// KillEvery is the time between two rounds of SIGKILL.
	KillEvery = 20 * time.Millisecond
	// KillLimit is how long an agent waits for the end of processes to which it has sent SIGKILL. A process that
	// hangs in the kernel may never end.
	KillLimit = 10 * time.Second
)

// Killer kills many processes at once, as a cgroup does.
type Killer interface{ Kill() }

// KillAll kills every descendant of this process, and waits at most KillLimit for their end. group may be nil.
// Once KillAll has been called, Start fails. KillAll sends SIGKILL repeatedly, so that it also kills a process
// whose fork had already begun.
func (c *Children) KillAll(group Killer) {
	c.ending.Store(true)
	for deadline := time.Now().Add(KillLimit); time.Now().Before(deadline); {
		empty, change := c.Empty()
		if empty {
			return
		}
		KillRound(group)
		select {
		case <-change:
		case <-time.After(KillEvery):
		}
	}
}

// KillRound sends SIGKILL once to every descendant of this process. It can miss a process that is forked
// meanwhile, so a caller must repeat it until no process is left.
func KillRound(group Killer) {
	if group != nil {
		group.Kill()
	}
	for _, p := range Descendants(os.Getpid()) {
		p.Signal(unix.SIGKILL)
	}
}
