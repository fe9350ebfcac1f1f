// Package controller runs a job from the side of the process that is in charge of it: it
// opens the run, supervises it, acts on signals and requests to stop it, and takes over runs
// whose controller is gone.
package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gangrun/gangrun/internal/controller/detached"
	"github.com/gangrun/gangrun/internal/controller/gpuwatch"
	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/controller/userenv"
	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// session is one run from its controller's side: everything wired together.
type session struct {
	Options
	records
	spec     job.Spec
	home     string
	tmp      string // holds the TMPDIRs of simulated hosts; "" when there are none
	launcher *launcher.Launcher
	show     *view.Live
	signals  chan os.Signal // those that ask for an end
	probed   *hosts.Found
	several  bool                   // the job names more hosts than one
	here     func(host string) bool // reports whether a host of the job is this machine
	turns    atomic.Int64           // places among those that wait for GPUs

	matrix *preflight.Matrix // what the preflight has found on the hosts; nil before, and of one host
}

// Options are how a session meets its user, and what the job file has no word for.
type Options struct {
	JSON          bool // standard output is for the report
	Aside         bool // the ranks' standard output is shown on standard error all the same
	Plain         bool // the ranks' bytes are shown as they are
	Terse         bool // nothing is said but why a run has failed
	Verbose       bool // the matrix is shown even where no host is odd
	PreflightOnly bool // no gang follows the preflight
	// universe is MPI_UNIVERSE_SIZE: 0 when not said, -1 when there is no bound.
	Universe int
	Mpiexec  bool              // the job was given to gangrun mpiexec
	Detached *detached.Process // nil where there is a terminal, or who stands for one
	taken    *Taken            // nil for a run of this process's own
	order    *asked            // to end the run that is taken over; nil for none
}

// Streams are where a screen shows what the ranks print.
func (t Options) Streams() (out, err screen.Stream) {
	ranks := os.Stdout
	if t.JSON || t.Aside {
		ranks = os.Stderr
	}
	if t.Plain {
		return screen.Stream{W: ranks}, screen.Stream{W: os.Stderr}
	}
	return screen.FileStream(ranks, os.Getenv), screen.FileStream(os.Stderr, os.Getenv)
}

// openSession makes the run's home and starts the agents in the background.
func openSession(spec job.Spec, options Options) (*session, error) {
	if err := usable(); err != nil {
		return nil, err
	}
	dir, err := HomeDir()
	if err != nil {
		return nil, err
	}
	if err := checkLeaseDir(spec); err != nil {
		return nil, err
	}
	list, err := hostlist.ForJob(spec)
	if err != nil {
		return nil, err
	}
	wanted, err := hosts.Wanted(spec, list.Hosts)
	if err != nil {
		return nil, err
	}
	if options.taken == nil { // else its ranks may be running
		if err := userenv.CheckSize(spec, userenv.ForRanks(os.Environ()), userenv.SizeLimit()); err != nil {
			return nil, err
		}
	}
	// From here on there is something that must be ended in order.
	tmp := ""
	if spec.Loopback > 0 {
		if tmp, err = hosts.TempDir(); err != nil {
			return nil, err
		}
	}
	signals := catch()
	kept, err := options.records(dir, spec)
	if err != nil {
		dismiss(signals, &runreport.Report{})
		return nil, err
	}
	run := kept.run
	if tmp != "" {
		tmp = filepath.Join(tmp, run.ID)
	}
	s := &session{Options: options, records: kept, tmp: tmp, spec: spec, home: dir, signals: signals, several: len(list.Hosts) > 1}
	outStream, errStream := options.Streams()
	s.show = view.NewLive(view.Options{Spec: spec, Run: run, Terse: options.Terse, Ending: options.order != nil, Screen: screen.New(screen.Options{
		Out: outStream, Err: errStream, Ranks: spec.Ranks, Hosts: len(wanted) > 1, Prefix: !options.Plain,
	})})
	var held map[string]job.Agent
	if options.taken != nil {
		held = options.taken.agents
	}
	dialer, err := hosts.NewDialer(list, spec, hosts.DialOptions{
		Held: held, LogDir: filepath.Join(run.Dir, "agents"), Lock: kept.control.File, Ask: s.show.Ask, Note: s.say, Started: s.started,
	})
	if err != nil {
		s.show.FlushLines(context.Background())
		dismiss(signals, &runreport.Report{})
		return nil, errors.Join(err, kept.discard())
	}
	s.here = dialer.Here
	for _, note := range append(hostlist.Of(spec).PipeNotes(), list.Notes...) {
		s.say("", note)
	}
	s.launcher = launcher.New(s.options(dialer, wanted))
	s.probed = hosts.Find(s.launcher, spec)
	return s, nil
}

// options are those of the session's launcher.
func (s *session) options(dialer hosts.Dialer, wanted []job.Host) launcher.Options {
	o := launcher.Options{
		Dialer: dialer, Hosts: wanted, Bring: dialer.Bring(), Env: userenv.ForRanks(os.Environ()), Network: s.spec.Network,
		HostTimeout: time.Duration(s.spec.HostTimeout), OrphanGrace: time.Duration(s.spec.OrphanGrace),
		Unclear: diagnose.Unclear, Universe: s.Universe, MPIEnv: s.Mpiexec,
	}
	if s.tmp != "" {
		o.Tmpdir = func(host string) string { return filepath.Join(s.tmp, host) }
	}
	if s.Detached == nil && s.order == nil { // else the logs have it
		o.Output = s.show.Output
	}
	if s.spec.Preflight == job.PreflightFull || s.spec.Retries > 0 { // it may be read again
		o.KeepStdin = job.KeptStdin
	}
	o.Stdin = s.stdin()
	return o
}

// stdin returns what the ranks are fed from; nil for nothing.
func (s *session) stdin() *os.File {
	switch {
	case s.spec.Stdin == job.StdinNone:
		return nil
	case s.taken != nil:
		return s.taken.stdin
	}
	return os.Stdin
}

// say tells the user something about a host; "" is about none.
func (s *session) say(host, what string) {
	if host != "" {
		what = host + ": " + what
	}
	s.show.Screen.Say("note: %s", text.Printable(what))
}

// started journals where an agent is, for a controller that comes after this one.
func (s *session) started(host string, at job.Agent) {
	if err := s.journal.Append(job.Event{Time: time.Now(), Kind: job.KindHost, Host: host, Agent: &at}); err != nil {
		s.say(host, fmt.Sprintf("a later gangrun will not find its agent: %v", err))
	}
}

// close ends the agents, removes what the session made outside of the run's home, and
// gives the control of the run back.
func (s *session) close() error {
	s.probed.Close()
	err := s.launcher.Close()
	if s.tmp != "" {
		err = errors.Join(err, os.RemoveAll(s.tmp))
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(s.run.Dir, "scratch")), s.control.Close())
}

// watchGPUs adds what the driver reports of this machine's GPUs to the events of a
// launcher's gangs. Simulated GPUs have no driver.
func (s *session) watchGPUs(l supervisor.Launcher) supervisor.Launcher {
	if s.spec.Loopback > 0 {
		return l
	}
	return gpuwatch.New(l, s.here)
}
