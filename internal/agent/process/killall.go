package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// KillEvery is the time between two rounds of SIGKILL.
	KillEvery = 20 * time.Millisecond
	// KillLimit bounds the wait for the end of processes that were sent SIGKILL: one
	// that hangs in the kernel may never end.
	KillLimit = 10 * time.Second
)

// Killer kills many processes at once, as a cgroup does.
type Killer interface{ Kill() }

// KillAll kills every process below this one, and waits at most KillLimit for their end. group may
// be nil. Once KillAll has been called, Start fails. KillAll repeats the kill, so that it also
// kills a process whose fork had already begun.
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

// KillRound sends SIGKILL once to every process below this one. It can miss a process that is
// forked meanwhile: a caller repeats it until none is left.
func KillRound(group Killer) {
	if group != nil {
		group.Kill()
	}
	for _, p := range Descendants(os.Getpid()) {
		p.Signal(unix.SIGKILL)
	}
}
