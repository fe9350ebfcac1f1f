package agent

import (
	"errors"
	"os"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/job"
)

// stdout returns how standard output of the gang's ranks is opened, where pty
// opens a pseudoterminal.
func (g *gang) stdout(pty output.Opener) output.Opener {
	tty := job.TTY(g.start.Tty)
	if !tty.For(job.MPI(g.start.Mpi)) {
		return output.OpenPipe
	}
	return func() (ours, theirs *os.File, err error) {
		ours, theirs, err = pty()
		var none output.PTYError
		switch {
		case !errors.As(err, &none):
			return ours, theirs, err
		case tty == job.TTYOn:
			return nil, nil, output.PTYError{Why: "there is no terminal for its standard output, which --tty on asks for: " + none.Why + ", or leave out --tty on"}
		}
		g.piped.Do(func() {
			g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindNote, Host: g.host, Text: "the ranks' standard output is a pipe, not a terminal as under mpirun, " +
				"so a rank that is killed may lose its last lines: " + none.Why})
		})
		return output.OpenPipe()
	}
}
