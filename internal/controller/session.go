// Package controller runs a job as its controller. It opens the run, supervises it, acts on
// signals and stop requests, and takes over runs whose controller is gone.
package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"github.com/gangrun/gangrun/internal/controller/batchjob"
	"github.com/gangrun/gangrun/internal/controller/detached"
	"github.com/gangrun/gangrun/internal/controller/gpuwatch"
	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/controller/stop"
	"github.com/gangrun/gangrun/internal/controller/userenv"
	"github.com/gangrun/gangrun/internal/curvewatch"
	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/rulefile"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// session is the controller's side of one run. It connects the parts that work on the run.
type session struct {
	Options
	records
	spec     job.Spec
	home     string
	tmp      string // the directory with the TMPDIRs of simulated hosts; empty if there are none
	launcher *launcher.Launcher
	show     *view.Live
	signals  *stop.Signals
	probed   *hosts.Found
	placer   *placer
	surveyor *surveyor
	batch    batchWatch
	several  bool // the job names several hosts
	dialer   hosts.Dialer
	curves   *curvewatch.Watcher // nil if nobody judges the curves of the job
}

// Options say how a run communicates with its user. They also have settings that a job file
// does not have.
type Options struct {
	JSON          bool // standard output is reserved for the report
	Aside         bool // the standard output of the ranks is shown on standard error
	Plain         bool // the output of the ranks is shown unchanged
	Terse         bool // only the cause of a failure is shown
	Verbose       bool // the preflight's table of hosts is shown even if the hosts do not differ
	PreflightOnly bool // there is no gang after the preflight
	GangRanks     int  // for PreflightOnly: how many ranks the gang will have; 0 if as many as the job
	// Universe is the value of MPI_UNIVERSE_SIZE for programs of MPICH: a number of ranks, -1 for no limit
	// (INFINITE), or 0 for the size of the gang.
	Universe int
	Mpiexec  bool              // the job was given to gangrun mpiexec
	Detached *detached.Process // nil unless this process was started by --detach
	book     *rule.Book        // the rules for finding the cause of a failure; nil means rules.Standard
	taken    *Taken            // the run that is taken over; nil for a new run
	order    *stop.Order       // an order to end the run that is taken over; nil if there is none
}

// Streams returns the streams on which a Screen shows the output of ranks.
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

// openSession creates the run, or takes it over, and starts the agents in the background.
func openSession(spec job.Spec, options Options) (*session, error) {
	if err := usable(); err != nil {
		return nil, err
	}
	if options.taken == nil {
		named := namesHosts(spec)
		if err := (batchjob.Start{Lookup: os.LookupEnv, Detach: options.Detached != nil, OwnHosts: named, Terminal: term.IsTerminal(0)}).Check(context.Background()); err != nil {
			return nil, err
		}
	}
	spec = resumed(spec)
	dir, err := HomeDir()
	if err == nil && spec.Rules != "" {
		options.book, err = rulefile.Book(spec.Rules)
	}
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
	image, err := imageFor(spec, dir, options.taken != nil)
	if err != nil {
		return nil, err
	}
	if err := options.checkSize(spec); err != nil {
		return nil, err
	}
	tmp := ""
	if spec.Loopback > 0 {
		if tmp, err = hosts.TempDir(); err != nil {
			return nil, err
		}
	}
	signals := stop.Catch(options.order)
	kept, err := options.records(dir, spec)
	if err != nil {
		signals.Dismiss(&runreport.Report{})
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
		Held: held, Dir: run.Dir, LogDir: filepath.Join(run.Dir, "agents"), Lock: kept.control.File, Ask: s.show.Ask, Note: s.say, Started: s.started,
		BatchSignal: s.batchSignal, BatchEnded: s.batch.check,
	})
	if err != nil {
		s.show.FlushLines(context.Background())
		signals.Dismiss(&runreport.Report{})
		return nil, errors.Join(err, kept.discard())
	}
	s.dialer = dialer
	for _, note := range append(hostlist.Of(spec).PipeNotes(), list.Notes...) {
		s.say("", note)
	}
	s.launcher = launcher.New(s.options(dialer, wanted, image))
	s.probed = hosts.Find(s.launcher, spec)
	s.placer = &placer{run: run.ID, simulated: spec.Loopback > 0, launcher: s.launcher, probed: s.probed, batch: allocationOf(spec, batchJob())}
	s.surveyor = &surveyor{spec: spec, launcher: s.launcher, probed: s.probed, verbose: options.Verbose, show: s.show.Say}
	return s, nil
}

// options returns the options of the session's launcher.
func (s *session) options(dialer hosts.Dialer, wanted []job.Host, image *launcher.Image) launcher.Options {
	o := launcher.Options{
		Dialer: dialer, Hosts: wanted, Bring: dialer.Bring(), Env: userenv.ForRanks(os.Environ()), Network: s.spec.Network,
		HostTimeout: time.Duration(s.spec.HostTimeout), OrphanGrace: time.Duration(s.spec.OrphanGrace), Run: s.run.ID, Image: image,
		Unclear: diagnose.Unclear, Universe: s.Universe, MPIEnv: s.Mpiexec,
	}
	if image != nil {
		image.Progress = (&imageProgress{say: func(text string) { s.say("", text) }}).add
	}
	if s.tmp != "" {
		o.Tmpdir = func(host string) string { return filepath.Join(s.tmp, host) }
	}
	if s.Detached == nil && s.order == nil { // otherwise the output is only in the logs
		o.Output = s.show.Output
	}
	if s.spec.Preflight == job.PreflightFull || s.spec.Retries > 0 { // the input may be needed again
		o.KeepStdin = job.KeptStdin
	}
	o.Stdin = s.stdin()
	return o
}

// stdin returns the file that is the ranks' standard input. It returns nil if there is none.
func (s *session) stdin() *os.File {
	switch {
	case s.spec.Stdin == job.StdinNone:
		return nil
	case s.taken != nil:
		return s.taken.stdin
	}
	return os.Stdin
}

// say shows a note about a host. If host is empty, the note is about no host.
func (s *session) say(host, what string) {
	if host != "" {
		what = host + ": " + what
	}
	s.show.Screen.Say("note: %s", text.Printable(what))
}

// started records for a later controller where an agent is.
func (s *session) started(host string, at job.Agent) {
	if err := s.journal.Append(job.Event{Time: time.Now(), Kind: job.KindHost, Host: host, Agent: &at}); err != nil {
		s.say(host, fmt.Sprintf("a later gangrun will not find its agent: %v", err))
	}
}

// close ends the agents, removes temporary directories, and gives up the control of the run.
func (s *session) close() error {
	s.probed.Close()
	err := errors.Join(s.launcher.Close(), s.dialer.Close(context.Background()))
	if s.tmp != "" {
		err = errors.Join(err, os.RemoveAll(s.tmp))
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(s.run.Dir, "scratch")), s.saves.Close(), s.control.Close())
}

// watchGPUs returns a launcher that adds events for the drivers' reports about the gang's GPUs. Simulated GPUs have no
// driver.
func (s *session) watchGPUs(l supervisor.Launcher) supervisor.Launcher {
	if s.spec.Loopback > 0 {
		return l
	}
	return gpuwatch.New(l, s.dialer.Here, s.dialer.RunNVML())
}

// diagnose finds the cause of a failure.
func (s *session) diagnose(e job.Evidence) job.Cause {
	if s.book == nil {
		return diagnose.Diagnose(e)
	}
	return diagnose.With(s.book, e)
}

// checkSize returns an error if the arguments and variables of ranks have too many bytes. It checks nothing if the run
// is taken over, because its ranks may be running.
func (t Options) checkSize(spec job.Spec) error {
	if t.taken != nil {
		return nil
	}
	return userenv.CheckSize(spec, userenv.ForRanks(os.Environ()), userenv.SizeLimit())
}
