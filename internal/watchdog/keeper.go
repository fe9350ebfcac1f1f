package watchdog

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Keeper asks the watchdog to keep the locked files of a lease open, too. If the agent is killed, the files stay locked
// until the watchdog has ended the agent's ranks.
type Keeper struct{ socket socket }

// NewKeeper takes over file, the agent's end of the socket to its watchdog (KeepFD).
func NewKeeper(file *os.File) (*Keeper, error) {
	s, err := newSocket(file)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not a socket of a watchdog: %w", KeepFD, err)
	}
	return &Keeper{s}, nil
}

// The first byte of a message says what to do. A name follows.
const (
	opKeep  = 'k' // keep the descriptors in this message open
	opDrop  = 'n' // close the descriptors that were sent with this name
	opAgent = 'a' // the name is the agent's PID; only the inner watchdog sends this message
)

// maxRights limits how many descriptors a message carries. The kernel allows 253.
const maxRights = 128

// Keep asks the watchdog to keep files open under a name. A nil Keeper does nothing.
func (k *Keeper) Keep(name string, fds []int) error {
	for ; k != nil && len(fds) > 0; fds = fds[min(len(fds), maxRights):] {
		if err := k.socket.send(append([]byte{opKeep}, name...), unix.UnixRights(fds[:min(len(fds), maxRights)]...)); err != nil {
			return fmt.Errorf("have the watchdog keep a lease: %w", err)
		}
	}
	return nil
}

// Drop asks the watchdog to close the files of a name. A nil Keeper does nothing.
func (k *Keeper) Drop(name string) {
	if k != nil {
		_ = k.socket.send(append([]byte{opDrop}, name...), nil) // the files are closed if the watchdog is gone
	}
}
