package agent

import (
	"path/filepath"

	"github.com/gangrun/gangrun/internal/agent/output"
)

// mpirunLog is the file of what mpirun says, on the host that starts it.
const mpirunLog = "mpirun.log"

// newWords returns the log of what mpirun says, on the host that starts it, or the
// daemon on every other. It has no pipe of its own: runtime writes to it.
func newWords(g *gang) *output.Stream {
	name := "daemon-" + g.host + ".log"
	if g.start.Mpirun != nil {
		name = mpirunLog
	}
	return output.NewLog(output.Options{Rank: output.RuntimeRank, Path: filepath.Join(string(g.start.LogDir), name), Grew: &g.bell, Spooled: g.spooled})
}
