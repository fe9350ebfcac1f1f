package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

// openMPI starts the ranks of a gang through Open MPI's own daemons: mpirun on
// the first host, orted or prted on the others, below the agents like all else.
// Its fields belong to the gang's goroutine, which do reaches.
type openMPI struct {
	g     *gang
	front *front
	pmix  *pmix
	do    chan func()
	ended chan struct{}
	wg    sync.WaitGroup

	words       *output.Stream // what mpirun has said, or this host's daemon
	tmpdir, shm string
	library     string           // the programs' own, if it is known
	waiting     map[int]prepared // ranks whose shim has not come
	mpirun      *process.Child
	link        string                 // the path of self, once it is made
	daemons     map[int]*process.Child // by the id of their Spawn
	feeds       map[int]*os.File
	asking      map[int]*net.UnixConn // rsh agents, by the id of their Spawn
	asked       int
	pids        map[int]bool // shims and rsh agents
	ordered     bool         // Open MPI wants the gang to end
	lost        time.Time    // when this host's ranks lost their PMIx server
}

func newOpenMPI(g *gang) (*openMPI, error) {
	o := &openMPI{
		g: g, do: make(chan func()), ended: make(chan struct{}), waiting: map[int]prepared{}, daemons: map[int]*process.Child{},
		feeds: map[int]*os.File{}, asking: map[int]*net.UnixConn{}, pids: map[int]bool{},
		words: newWords(g),
	}
	o.pmix = newPMIx(o.said, func() { o.post(o.daemonLost) })
	var err error
	var errs []error
	for _, dir := range append([]string{cmp.Or(environ.Lookup(g.env, "TMPDIR"), os.TempDir())}, tempfiles.Fallbacks...) {
		if o.tmpdir, err = os.MkdirTemp(dir, tempfiles.Prefix(os.Getpid())+"*"); err == nil {
			if err = room(o.tmpdir); err == nil {
				break
			}
			_ = os.Remove(o.tmpdir)
			o.tmpdir = ""
		}
		errs = append(errs, err)
	}
	if o.tmpdir == "" {
		return o, errors.Join(errs...)
	}
	if o.shm, err = os.MkdirTemp(tempfiles.SharedDir, tempfiles.Prefix(os.Getpid())+"*"); err != nil {
		o.shm = o.tmpdir // slower, and always there
	}
	o.front, err = newFront(o.hear)
	return o, err
}

// room reports whether Open MPI's daemon can write its own files to dir: without
// them it fails with words that do not tell why.
func room(dir string) error {
	path := filepath.Join(dir, "room")
	defer os.Remove(path)
	return os.WriteFile(path, make([]byte, 256<<10), 0o600)
}

// self returns a path of this program that holds no blank, exists as long as this process,
// stays the same when the file is replaced, and is the same on all machines of the gang.
func (o *openMPI) self() (string, error) {
	if !o.g.start.Spread {
		return tempfiles.SelfPath(), nil
	}
	if o.link == "" {
		link, err := tempfiles.LinkSelf(o.g.start.Gang)
		if err != nil {
			return "", err
		}
		o.link = link
	}
	return o.link, nil
}

// post runs f in the gang's goroutine; false when the gang has ended.
func (o *openMPI) post(f func()) bool {
	done := make(chan struct{})
	select {
	case o.do <- func() { defer close(done); f() }:
		<-done
		return true
	case <-o.ended:
		return false
	}
}

// launch makes the ranks ready for their shims and, on the first host, starts
// mpirun.
func (o *openMPI) launch() error {
	g := o.g
	paths := map[string]program{}
	for _, want := range g.start.Ranks {
		p := g.prepare(want, paths)
		if p.rank != nil {
			g.ranks = append(g.ranks, p.rank)
			o.waiting[p.rank.number] = p
		}
		if p.err != nil {
			return p.err
		}
		if o.library == "" {
			_, o.library = mpilib.Of(p.path, p.attr.Env)
		}
	}
	g.alive = len(g.ranks)
	o.wg.Go(func() {
		select {
		case <-time.After(startLimit):
			o.post(o.hurry)
		case <-o.ended:
		}
	})
	if m := g.start.Mpirun; m != nil {
		return o.startMpirun(m)
	}
	return nil
}

// giveUp closes the streams of ranks that will never have a shim.
func (o *openMPI) giveUp() {
	for _, p := range o.waiting {
		p.rank.pump(p.streams, o.g.release)
	}
	clear(o.waiting)
	o.g.alive = 0
}

// own reports whether a process is Open MPI's or gangrun's, not a rank's.
func (o *openMPI) own(pid int) bool {
	if o.mpirun != nil && o.mpirun.PID == pid || o.pids[pid] {
		return true
	}
	for _, d := range o.daemons {
		if d.PID == pid {
			return true
		}
	}
	return false
}

// dismiss ends mpirun and the daemons of a gang that is being ended and has no
// living rank: there is nothing left for them to do.
func (o *openMPI) dismiss() {
	for _, ch := range o.daemons {
		o.g.children.Signal(ch, unix.SIGKILL)
	}
	if o.mpirun != nil {
		o.g.children.Signal(o.mpirun, unix.SIGKILL)
	}
}

// said is what a rank wants its server to print: mpirun does, on the first host.
func (o *openMPI) said(rank int, text string) {
	file := filepath.Join(string(o.g.start.LogDir), mpirunLog)
	for line := range strings.Lines(text) {
		o.g.reports.Lines(job.Line{Source: job.SourceStderr, Host: o.g.host, Rank: rank, File: file, Time: hostclock.Now(), Text: output.Clean([]byte(line))})
	}
}

// daemonLost ends the gang when mpirun, or this host's daemon, has left ranks
// behind: what becomes of them follows from that.
func (o *openMPI) daemonLost() {
	if !o.lost.IsZero() || o.g.stopping || o.ordered || o.g.alive == 0 {
		return
	}
	o.lost = time.Now()
	daemon := "Open MPI's daemon"
	if o.g.start.Mpirun != nil {
		daemon = "mpirun, which is Open MPI's daemon here,"
	}
	o.stop(fmt.Sprintf("%s has left its ranks on %s: it died", daemon, o.g.host))
}

// stop has the controller end the gang, for a reason that is no rank's.
func (o *openMPI) stop(why string) {
	now := time.Now()
	o.g.reports.Lines(job.Line{Source: job.SourceAgent, Host: o.g.host, Rank: -1, Time: now, Text: why})
	o.g.reports.Event(job.Event{Time: now, Kind: job.KindStop, Host: o.g.host, Text: why})
}

// startLimit bounds how long mpirun may take to start the ranks of a host.
const startLimit = 2 * time.Minute

// hurry ends the gang if mpirun does not start its ranks in time: it hangs now
// and then.
func (o *openMPI) hurry() {
	if len(o.waiting) > 0 && !o.g.stopping {
		o.stop(fmt.Sprintf("mpirun has not started %d ranks on %s within %s: Open MPI's daemon does not answer", len(o.waiting), o.g.host, startLimit))
	}
}

func (o *openMPI) change() <-chan struct{} { return o.pmix.changed }

func (o *openMPI) wireup() job.Wireup {
	up := job.Wireup{MPI: job.MPIOpenMPI, In: []int{}, Ordered: o.ordered}
	for _, r := range o.g.ranks {
		switch state, in, seen := o.pmix.state(r.number); {
		case in:
			up.In = append(up.In, r.number)
			if state.Waiting {
				up.Waiting = append(up.Waiting, r.number)
			}
		case seen || r.child == nil:
			up.Silent = append(up.Silent, r.number)
		}
	}
	return up
}

func (o *openMPI) aborted() (ranks []int) {
	for _, r := range o.g.ranks {
		if state, _, _ := o.pmix.state(r.number); state.Aborted {
			ranks = append(ranks, r.number)
		}
	}
	return ranks
}

func (o *openMPI) mark(e *job.Exit) {
	if !o.lost.IsZero() && e.Time.After(o.lost) {
		e.Stopped = true
	}
	switch state, in, seen := o.pmix.state(e.Rank); {
	case !seen || state.Opaque:
		// whatever it is, it is unknown
	case !in:
		e.Joined = job.JoinedSilent
	case state.Finalized:
		e.Joined = job.JoinedFinalized
	default:
		e.Joined = job.JoinedInit
		if state.Aborted {
			markAbort(e, state.Code)
		}
	}
}

// close ends what is left and removes its directories.
func (o *openMPI) close() {
	close(o.ended)
	if o.front != nil {
		o.front.close()
	}
	for _, feed := range o.feeds {
		_ = feed.Close()
	}
	o.pmix.close()
	over := make(chan struct{})
	go func() { defer close(over); o.wg.Wait() }()
	comes(over, strayGrace) // mpirun, or what holds its output, may not be killed
	o.words.Seal()
	_ = os.RemoveAll(o.tmpdir)
	_ = os.RemoveAll(o.shm)
	if o.link != "" {
		tempfiles.RemoveLinks(os.Getpid())
	}
}
