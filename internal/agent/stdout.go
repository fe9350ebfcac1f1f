package agent

import (
	"errors"
	"os"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/job"
)

// stdout returns how standard output of the gang's ranks is opened, where pty
// opens a pseudoterminal.
func (g *gang) stdout(pty opener) opener {
	tty := job.TTY(g.start.Tty)
	if !tty.For(job.MPI(g.start.Mpi)) {
		return openPipe
	}
	return func() (ours, theirs *os.File, err error) {
		ours, theirs, err = pty()
		var none ptyError
		switch {
		case !errors.As(err, &none):
			return ours, theirs, err
		case tty == job.TTYOn:
			return nil, nil, ptyError{"there is no terminal for its standard output, which --tty on asks for: " + none.why + ", or leave out --tty on"}
		}
		g.piped.Do(func() {
			g.reports.event(job.Event{Time: hostclock.Now(), Kind: job.KindNote, Host: g.host, Text: "the ranks' standard output is a pipe, not a terminal as under mpirun, " +
				"so a rank that is killed may lose its last lines: " + none.why})
		})
		return openPipe()
	}
}
