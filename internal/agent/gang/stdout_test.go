package gang

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// TestStdout checks which ranks get a terminal, and what happens on a host that has no terminals.
func TestStdout(t *testing.T) {
	var asked, given int
	have := func() (*os.File, *os.File, error) { asked++; return output.OpenPTY() }
	none := func() (*os.File, *os.File, error) { asked++; return nil, nil, output.PTYError{Why: "there is none"} }
	few := func() (*os.File, *os.File, error) { asked++; return nil, nil, unix.EMFILE }
	for _, c := range []struct {
		tty      job.TTY
		mpi      job.MPI
		pty      output.Opener
		terminal bool
		notes    int
		fails    string // the text of an error
	}{
		{"auto", job.MPIOpenMPI, have, true, 0, ""},
		{"", job.MPIOpenMPI, have, true, 0, ""},
		{"auto", job.MPIMPICH, have, false, 0, ""},
		{"auto", job.MPINone, have, false, 0, ""},
		{"on", job.MPINone, have, true, 0, ""},
		{"on", job.MPIMPICH, have, true, 0, ""},
		{"off", job.MPIOpenMPI, have, false, 0, ""},
		{"auto", job.MPIOpenMPI, none, false, 1, ""},
		{"auto", job.MPIMPICH, none, false, 0, ""},
		{"off", job.MPIOpenMPI, none, false, 0, ""},
		{"on", job.MPIOpenMPI, none, false, 0, "there is no terminal for its standard output, which --tty on asks for: there is none, or leave out --tty on"},
		{"auto", job.MPIOpenMPI, few, false, 0, unix.EMFILE.Error()},
	} {
		t.Run(string(c.tty)+" "+string(c.mpi), func(t *testing.T) {
			asked, given = 0, 0
			g := New(Config{Host: "h1", Start: &wire.Start{Tty: string(c.tty), Mpi: string(c.mpi)}, Reports: &report.Queue{}})
			open := g.stdout(c.pty)
			for range 3 {
				ours, theirs, err := open()
				if c.fails != "" {
					if err == nil || err.Error() != c.fails {
						t.Errorf("got %v, want %s", err, c.fails)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS); (err == nil) != c.terminal {
					t.Errorf("it is a terminal: %t (%v), want %t", err == nil, err, c.terminal)
				}
				given++
				_, _ = ours.Close(), theirs.Close()
			}
			notes := 0
			g.Reports.Done(nil)
			var sent replies
			if err := g.Reports.Send(t.Context(), &sent); err != nil {
				t.Fatal(err)
			}
			for _, e := range sent[0].Events {
				if strings.Contains(string(e), `"kind":"note"`) && strings.Contains(string(e), "there is none") {
					notes++
				}
			}
			if notes != c.notes {
				t.Errorf("there were %d notes for %d ranks, want %d", notes, given, c.notes)
			}
			if wants := job.TTY(c.tty).For(c.mpi); wants != (asked == 3) || !wants && asked != 0 {
				t.Errorf("a terminal was asked for %d times", asked)
			}
		})
	}
}

// replies has what a gang has reported.
type replies []*wire.GangReply

func (r *replies) Send(m *wire.GangReply) error { *r = append(*r, m); return nil }
