package agent

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/watchdog"
)

// keeper asks the watchdog to keep the locked files of a lease open too. If the agent is killed,
// they stay locked until the watchdog has ended its ranks.
type keeper struct{ conn *net.UnixConn }

// newKeeper takes over the agent's end of the socket to its watchdog.
func newKeeper(file *os.File) (*keeper, error) {
	conn, err := unixConn(file)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not a socket of a watchdog: %w", watchdog.KeepFD, err)
	}
	return &keeper{conn}, nil
}

// The first byte of a message; a name follows.
const (
	opKeep  = 'k' // keep the descriptors in this message open
	opDrop  = 'n' // close the descriptors that were sent with that name
	opAgent = 'a' // the name is the agent's PID; only the inner watchdog sends it
)

// maxRights is how many descriptors a message carries at most. The kernel allows 253.
const maxRights = 128

// keep asks the watchdog to keep files open under a name. A nil keeper does nothing.
func (k *keeper) keep(name string, fds []int) error {
	for ; k != nil && len(fds) > 0; fds = fds[min(len(fds), maxRights):] {
		if _, _, err := k.conn.WriteMsgUnix(append([]byte{opKeep}, name...), unix.UnixRights(fds[:min(len(fds), maxRights)]...), nil); err != nil {
			return fmt.Errorf("have the watchdog keep a lease: %w", err)
		}
	}
	return nil
}

// drop asks the watchdog to close the files of a name. A nil keeper does nothing.
func (k *keeper) drop(name string) {
	if k != nil {
		_, _ = k.conn.Write(append([]byte{opDrop}, name...)) // a watchdog that is gone has closed them
	}
}
