package agent

import (
	"path/filepath"
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
	return newLog(streamOptions{Rank: runtimeRank, Path: filepath.Join(string(g.start.LogDir), name), Grew: &g.bell, Spooled: g.spooled})
}
