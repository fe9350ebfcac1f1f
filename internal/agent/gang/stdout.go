package gang

import (
	"errors"
	"os"
	"sync"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
)

// stdout returns the function that opens the standard output of the gang's ranks. That is output.OpenPipe, or pty for a
// pseudoterminal.
func (g *Gang) stdout(pty output.Opener) output.Opener {
	tty := job.TTY(g.Start.Tty)
	if !tty.For(job.MPI(g.Start.Mpi)) {
		return output.OpenPipe
	}
	var once sync.Once
	return func() (ours, theirs *os.File, err error) {
		ours, theirs, err = pty()
		var none output.PTYError
		switch {
		case !errors.As(err, &none):
			return ours, theirs, err
		case tty == job.TTYOn:
			return nil, nil, output.PTYError{Why: "there is no terminal for its standard output, which --tty on asks for: " + none.Why + ", or leave out --tty on"}
		}
		once.Do(func() {
			g.Reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindNote, Host: g.Host, Text: "the ranks' standard output is a pipe, not a terminal as under mpirun, " +
				"so a rank that is killed may lose its last lines: " + none.Why})
		})
		return output.OpenPipe()
	}
}
