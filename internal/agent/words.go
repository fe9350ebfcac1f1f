package agent

import (
	"path/filepath"

	"github.com/gangrun/gangrun/internal/wire"
)

// runtimeRank stands where a rank does for what is no rank's: what mpirun says, or
// Open MPI's daemon.
const runtimeRank = -1

// newWords returns the log of what mpirun says, on the host that starts it, or the
// daemon on every other. It has no pipe of its own: runtime writes to it.
func newWords(host string, start *wire.Start, bell *bell) *stream {
	name := "daemon-" + host
	if start.Mpirun != nil {
		name = "mpirun"
	}
	return &stream{rank: runtimeRank, path: filepath.Join(string(start.LogDir), name+".log"), bell: bell}
}

// grow tells followers that so many more bytes are in the log.
func (s *stream) grow(n int) {
	s.mu.Lock()
	s.written += int64(n)
	s.mu.Unlock()
	s.bell.ring()
}

// seal tells followers that nothing more comes.
func (s *stream) seal() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.bell.ring()
}
