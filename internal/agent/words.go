package agent

import (
	"os"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/remote/bridge"
)

// runtimeRank stands where a rank does for what is no rank's: what mpirun says, or
// Open MPI's daemon.
const runtimeRank = -1

// mpirunLog is the file of what mpirun says, on the host that starts it.
const mpirunLog = "mpirun.log"

// newWords returns the log of what mpirun says, on the host that starts it, or the
// daemon on every other. It has no pipe of its own: runtime writes to it.
func newWords(g *gang) *stream {
	name := "daemon-" + g.host + ".log"
	if g.start.Mpirun != nil {
		name = mpirunLog
	}
	return &stream{rank: runtimeRank, path: filepath.Join(string(g.start.LogDir), name), bell: &g.bell, spooled: g.spooled}
}

// grow tells followers that so many more bytes are in the log.
func (s *stream) grow(n int) {
	s.mu.Lock()
	s.written += int64(n)
	s.mu.Unlock()
	s.bell.ring()
}

// seal tells followers that nothing more comes, and whoever reads the spool when the
// agent is gone.
func (s *stream) seal() {
	if s.spooled && !s.torn {
		_ = os.Chmod(s.path, bridge.Whole) // else it counts as cut off, which is told
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.bell.ring()
}
