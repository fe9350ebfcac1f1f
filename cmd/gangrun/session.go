package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/topology"
)

// session is one run from its controller's side: everything wired together.
type session struct {
	spec     job.Spec
	run      home.Run
	journal  *journal.Journal
	home     string
	tmp      string // holds the TMPDIRs of pretended hosts; "" when there are none
	launcher *launcher.Launcher
	show     *show
	signals  chan os.Signal // those that ask for an end
	detached *detached      // nil where it is not
	lock     *os.File       // of the controller: nobody else becomes it while this is open
	taken    *taken         // nil for a run of this process's own

	pretended []job.Host // of the inventory, with their GPUs
	list      []job.Host // that the job names; empty is this machine
	far       bool       // some of list are other machines
	hosts     []job.Host // with what the agents found, once probed is closed
	unreached []launcher.Unreached
	hostsErr  error         // why they could not be probed
	findings  []job.Finding // about their GPUs
	looked    time.Time     // when they were looked at
	turns     atomic.Int64  // places among those that wait for GPUs
	probed    chan struct{} // closed when hosts is set
	stopProbe context.CancelFunc

	verbose bool              // the matrix is shown even where no host is odd
	tell    func(line string) // shows a line, and waits for no terminal
	matrix  *preflight.Matrix // what the preflight has found on the hosts; nil before, and of one host
}

// terms are how a session meets its user, and what the job file has no word for.
type terms struct {
	out   *os.File // takes the ranks' standard output
	plain bool     // the ranks' bytes are shown as they are
	terse bool     // nothing is said but why a run has failed
	// universe is MPI_UNIVERSE_SIZE: 0 when not said, -1 when there is no bound.
	universe int
	detached *detached // nil where there is a terminal, or who stands for one
	taken    *taken    // nil for a run of this process's own
}

// streams are where a screen shows what the ranks print.
func (t terms) streams() (out, err screen.Stream) {
	if t.plain {
		return screen.Stream{W: t.out}, screen.Stream{W: os.Stderr}
	}
	return screen.FileStream(t.out, os.Getenv), screen.FileStream(os.Stderr, os.Getenv)
}

// openSession is openSessionOn for a command that tells how the run goes. The
// ranks' standard output goes to out.
func openSession(spec job.Spec, out *os.File) (*session, error) {
	return openSessionOn(spec, terms{out: out})
}

// openSessionOn makes the run's home and starts the agents in the background.
func openSessionOn(spec job.Spec, terms terms) (*session, error) {
	dir, err := home.Dir(os.Getenv)
	if err != nil {
		return nil, &failure{code: exitUsage, err: err}
	}
	if err := leaseDirOf(spec); err != nil {
		return nil, err
	}
	var pretended []job.Host
	if spec.Inventory != "" && spec.Loopback > 0 {
		if pretended, err = pretend(spec); err != nil {
			return nil, err
		}
	}
	list, err := jobHosts(spec)
	if err != nil {
		return nil, err
	}
	// From here on there is something that must be ended in order.
	tmp := ""
	if spec.Loopback > 0 {
		if tmp, err = ownTmp(); err != nil {
			return nil, err
		}
	}
	signals := catch()
	run, journal, lock, err := terms.records(dir, spec)
	if err != nil {
		signal.Stop(signals)
		return nil, err
	}
	s := &session{spec: spec, run: run, journal: journal, home: dir, signals: signals, pretended: pretended, list: list.Hosts, detached: terms.detached, lock: lock, taken: terms.taken, probed: make(chan struct{})}
	outStream, errStream := terms.streams()
	s.show = newShow(spec, run, terms.terse, screen.New(screen.Options{
		Out: outStream, Err: errStream, Ranks: spec.Ranks, Hosts: spec.Loopback > 1 || len(list.Hosts) > 1, Prefix: !terms.plain,
	}))
	dialer, err := newDialer(list, spec, filepath.Join(run.Dir, "agents"), s.show.ask, s.say, s.started)
	if err != nil {
		signal.Stop(signals)
		return nil, errors.Join(err, journal.Close(), lock.Close())
	}
	dialer.local.Held = lock
	if dialer.agents != nil && terms.taken != nil {
		dialer.agents.Held = terms.taken.agents
	}
	s.far = dialer.agents != nil
	for _, note := range list.Notes {
		s.say("", note)
	}
	options := launcher.Options{
		Dialer:  dialer,
		Hosts:   s.wantedHosts(),
		Output:  s.show.output,
		Cascade: diagnose.Cascade,

		Universe: terms.universe,

		Network: spec.Network, Env: travelling(os.Environ()), Bring: dialer.bring(),
		HostTimeout: time.Duration(spec.HostTimeout), OrphanGrace: time.Duration(spec.OrphanGrace),
	}
	if spec.Loopback > 0 {
		s.tmp = filepath.Join(tmp, run.ID)
		options.Tmpdir = func(host string) string { return filepath.Join(s.tmp, host) }
	}
	if terms.detached != nil {
		options.Output = nil // the logs have it
	}
	if spec.Stdin != job.StdinNone && terms.taken == nil {
		options.Stdin = os.Stdin
	} else if spec.Stdin != job.StdinNone {
		options.Stdin = terms.taken.stdin
	}
	s.launcher = launcher.New(options)
	ctx, cancel := context.WithCancel(context.Background())
	s.stopProbe = cancel
	go func() {
		defer close(s.probed)
		s.hosts, s.unreached, s.hostsErr = s.launcher.Probe(ctx)
		if len(s.unreached) > 0 && len(s.hosts) > 0 && ctx.Err() == nil {
			text, hint := notReached(s.unreached)
			s.show.screen.Say("warning: %s", printable("not reached, and left out: "+text))
			if hint != "" {
				s.show.screen.Say("hint: %s", printable(hint))
			}
		}
		if s.hostsErr == nil && spec.Loopback == 0 && spec.GPUs != 0 {
			s.look(ctx, nil)
		}
	}()
	return s, nil
}

// records makes the records of a new run, with this process as its controller, or
// returns those of the run that is taken over.
func (t terms) records(dir string, spec job.Spec) (run home.Run, j *journal.Journal, lock *os.File, err error) {
	if t.taken != nil {
		run, j, lock = t.taken.run, t.taken.journal, t.taken.lock
	} else {
		for _, path := range []*string{&spec.Hostfile, &spec.Inventory} { // who takes over may be elsewhere
			if *path == "" {
				continue
			}
			if *path, err = filepath.Abs(*path); err != nil {
				return run, nil, nil, err
			}
		}
		text, err := jobfile.Marshal(spec)
		if err != nil {
			return run, nil, nil, err
		}
		if run, j, err = home.Create(dir, time.Now(), spec.Name, text, rand.Reader); err != nil {
			return run, nil, nil, err
		}
		if lock, err = run.Control(home.Self()); err != nil {
			return run, nil, nil, errors.Join(err, j.Close())
		}
	}
	if t.detached != nil {
		if err := t.detached.settle(run); err != nil {
			return run, nil, nil, errors.Join(err, j.Close(), lock.Close())
		}
	}
	return run, j, lock, nil
}

// ownTmp returns this user's directory for short-lived things, made if need be.
// Anybody may have made it before: it must be this user's, and nobody else's to
// write.
func ownTmp() (string, error) {
	dir := filepath.Join(os.TempDir(), "gangrun-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", &failure{code: exitInternal, err: fmt.Errorf("make a directory for the ranks' TMPDIR: %w", err), hint: "set TMPDIR to a directory in which you may write"}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return "", &failure{code: exitInternal, err: fmt.Errorf("%q is not a directory that only this user can write to (mode %s)", dir, info.Mode()), hint: "remove it, or set TMPDIR to another directory"}
	}
	return dir, nil
}

// say tells the user something about a host; "" is about none.
func (s *session) say(host, text string) {
	if host != "" {
		text = host + ": " + text
	}
	s.show.screen.Say("note: %s", printable(text))
}

// started journals where an agent is, for a controller that comes after this one.
func (s *session) started(host string, at job.Agent) {
	if err := s.journal.Append(job.Event{Time: time.Now(), Kind: job.KindHost, Host: host, Agent: &at}); err != nil {
		s.say(host, fmt.Sprintf("a later gangrun will not find its agent: %v", err))
	}
}

// wantedHosts are those that the job names, this machine, or the hosts that it
// pretends to be.
func (s *session) wantedHosts() []job.Host {
	if len(s.list) > 0 {
		hosts := slices.Clone(s.list)
		for i := range hosts { // what they have their agents tell
			hosts[i].Devices, hosts[i].Links, hosts[i].NICs = nil, nil, nil
		}
		return hosts
	}
	if s.spec.Loopback == 0 {
		name, err := os.Hostname()
		if err != nil || name == "" {
			name = "localhost"
		}
		return []job.Host{{Name: name, Address: "127.0.0.1"}}
	}
	if len(s.pretended) > 0 {
		return s.pretended
	}
	var hosts []job.Host
	for _, name := range loopbackHosts(s.spec.Loopback) {
		hosts = append(hosts, job.Host{Name: name, Address: "127.0.0.1"})
	}
	return hosts
}

// loopbackHosts names as many pretended hosts.
func loopbackHosts(n int) []string {
	var names []string
	for i := range n {
		names = append(names, "h"+strconv.Itoa(i+1))
	}
	return names
}

// look has the agents find out what the GPUs of all hosts but some are used for.
func (s *session) look(ctx context.Context, but []string) {
	hosts, findings, err := s.launcher.Devices(ctx, without(s.hosts, but))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		findings = append(findings, job.Finding{Severity: job.SeverityWarning, Text: err.Error()})
	}
	all := slices.Clone(s.hosts)
	for i, h := range all {
		if j := slices.IndexFunc(hosts, func(o job.Host) bool { return o.Name == h.Name }); j >= 0 {
			all[i] = hosts[j]
		}
	}
	s.hosts, s.findings, s.looked = all, findings, time.Now()
}

// without returns the hosts but some.
func without(hosts []job.Host, but []string) []job.Host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h job.Host) bool { return slices.Contains(but, h.Name) })
}

// inventory waits for the agents. Slots are a machine's cores; pretended hosts
// share them.
func (s *session) inventory(ctx context.Context) (job.Inventory, error) {
	select {
	case <-s.probed:
	case <-ctx.Done():
		return job.Inventory{}, context.Cause(ctx)
	}
	if s.hostsErr != nil {
		var apart *launcher.NetworkError
		if errors.As(s.hostsErr, &apart) {
			return job.Inventory{}, supervisor.NoPlacement{Text: apart.Error(), Hint: apart.Hint()}
		}
		return job.Inventory{}, s.hostsErr
	}
	if len(s.hosts) == 0 {
		return job.Inventory{}, noHosts(s.unreached)
	}
	inventory := job.Inventory{}
	for _, h := range s.hosts {
		if !h.Hard {
			h.Slots = max(1, h.Cores/max(1, s.spec.Loopback))
		}
		inventory.Hosts = append(inventory.Hosts, h)
	}
	return inventory, nil
}

// Place implements supervisor.Placer. CPU ranks hold nothing that could be
// lost, so their lease lasts.
func (s *session) Place(ctx context.Context, spec job.Spec, not job.Excluded, emit func(job.Event)) (supervisor.Lease, error) {
	lease, err := s.place(ctx, spec, not, 0, emit)
	var none supervisor.NoPlacement
	for smaller := spec; errors.As(err, &none) && spec.MinRanks > 0 && smaller.Ranks > spec.MinRanks; {
		smaller.Ranks--
		var other error
		if lease, other = s.place(ctx, smaller, not, 0, emit); other == nil {
			emit(job.Event{Kind: job.KindNote, Text: fmt.Sprintf("a gang of %d ranks, for want of room for more: %s", smaller.Ranks, none.Text)})
			return lease, nil
		}
		if !errors.As(other, new(supervisor.NoPlacement)) {
			return lease, other
		}
	}
	return lease, err
}

// place is Place for what needs its place for no longer than limit; 0 is not
// known.
func (s *session) place(ctx context.Context, spec job.Spec, not job.Excluded, limit time.Duration, emit func(job.Event)) (supervisor.Lease, error) {
	for away := []string(nil); ; {
		p, inventory, err := s.gpuPlacer(ctx, spec, not, away, limit, emit)
		if err != nil {
			return supervisor.Lease{}, err
		}
		var lease supervisor.Lease
		if p != nil {
			lease, err = p.place(ctx)
		} else {
			lease, err = placeOnCPUs(spec, inventory, not)
		}
		gone := launcher.Unreachable(err)
		if len(gone) == 0 || ctx.Err() != nil {
			return lease, s.without(err)
		}
		for _, host := range slices.Sorted(maps.Keys(gone)) {
			away = append(away, host)
			emit(job.Event{Kind: job.KindNote, Text: fmt.Sprintf("going on without %s: %v", host, gone[host])})
		}
	}
}

// placeOnCPUs is place for ranks without GPUs.
func placeOnCPUs(spec job.Spec, inventory job.Inventory, not job.Excluded) (supervisor.Lease, error) {
	placement, why, err := topology.Place(spec, inventory, not)
	var none *topology.NoPlacement
	if errors.As(err, &none) {
		return supervisor.Lease{}, supervisor.NoPlacement{Text: none.Text, Hint: none.Hint}
	}
	return supervisor.Lease{Placement: placement, Explanation: why, Held: context.Background(), Release: func() {}}, err
}

// gpuPlacer returns who places ranks on GPUs, nil where they have none, and what
// there is. Hosts that are excluded or away are not asked for anything: they may not
// answer.
func (s *session) gpuPlacer(ctx context.Context, spec job.Spec, not job.Excluded, away []string, limit time.Duration, emit func(job.Event)) (*gpuPlacer, job.Inventory, error) {
	inventory, err := s.inventory(ctx)
	if err != nil {
		return nil, inventory, err
	}
	missed := spec.GPUs > 0 && !slices.ContainsFunc(inventory.Hosts, func(h job.Host) bool { return len(h.Devices) > 0 })
	for _, f := range s.findings {
		if (missed || f.Severity != job.SeverityNote) && emit != nil {
			text := strings.TrimSuffix(f.Text+"; "+f.Hint, "; ")
			if len(inventory.Hosts) > 1 {
				text = on(f.Host) + text
			}
			emit(job.Event{Kind: job.KindNote, Text: text})
		}
	}
	s.findings = nil
	gpus := spec.GPUs
	if gpus < 0 {
		gpus = 0
		if slices.ContainsFunc(inventory.Hosts, func(h job.Host) bool { return len(h.Devices) > 0 }) {
			gpus = 1
		}
	}
	if gpus <= 0 {
		return nil, inventory, nil
	}
	but := slices.Concat(not.Hosts, away)
	var again func() []job.Host
	if spec.Loopback == 0 {
		again = func() []job.Host {
			s.look(ctx, but)
			fresh, _ := s.inventory(ctx) // which is there
			return without(fresh.Hosts, but)
		}
		if time.Since(s.looked) >= lookAgain { // an attempt has run since
			inventory.Hosts = again()
		}
	}
	return &gpuPlacer{
		turn: func(host, space string) gpuTurn {
			return agentTurn{s.launcher.Turn(host, space, fmt.Sprintf("%s/%d", s.run.ID, s.turns.Add(1)))}
		},
		run: s.run.ID, command: strings.Join(spec.Command, " "), hosts: without(inventory.Hosts, but), pretend: spec.Loopback > 0,
		want:    topology.Want{Ranks: spec.Ranks, GPUs: gpus, Locality: spec.Locality},
		guessed: spec.GPUs < 0, patience: spec.Patience, limit: limit, not: not, emit: emit, again: again,
	}, inventory, nil
}

// fitting is a Checker that does not try what would never fit.
type fitting struct {
	supervisor.Checker
	s *session
}

func (f fitting) Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	p, inventory, err := f.s.gpuPlacer(ctx, spec, job.Excluded{}, nil, 0, emit)
	switch {
	case err != nil:
	case p != nil:
		err = p.never()
	default:
		_, err = placeOnCPUs(spec, inventory, job.Excluded{})
	}
	if err = f.s.without(err); err != nil {
		return nil, err
	}
	return f.Checker.Check(ctx, spec, emit)
}

// preflight returns the Checker of the run; nil when there is nothing to check.
func (s *session) preflight() (supervisor.Checker, error) {
	if s.spec.Preflight == job.PreflightOff {
		return nil, nil
	}
	logs, err := s.run.AttemptDir(0)
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(s.run.Dir, "scratch")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, err
	}
	return fitting{s: s, Checker: &preflight.Preflight{
		Surveyor: s,
		Runner:   quiet{s.launcher},
		Place: func(ctx context.Context, ranks int, limit time.Duration, emit func(job.Event)) (job.Placement, func(), error) {
			spec := s.spec
			spec.Ranks = ranks
			lease, err := s.place(ctx, spec, job.Excluded{}, limit, emit)
			return lease.Placement, lease.Release, err
		},
		Diagnose:  diagnose.Diagnose,
		WorldSize: diagnose.WorldSize,
		Memory:    preflight.Memory{Dir: filepath.Join(s.home, "trials")},
		Run:       s.run.ID,
		LogDir:    logs,
		Scratch:   scratch,
	}}, nil
}

// quiet runs trials: what they print is shown only if they fail.
type quiet struct{ *launcher.Launcher }

func (q quiet) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	a.Show = job.OutputNone
	return q.Launcher.Run(ctx, a, emit)
}

// catch returns the signals that ask for an end, from now on.
func catch() chan os.Signal {
	signals := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, signalNow} {
		if !signal.Ignored(sig) { // nohup, or a shell's background job
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// interruptible returns a context that ends with the first signal that asks
// for an end; the second ends the gang at once, and every wait for the
// terminal. stop gives the signals back.
func (s *session) interruptible() (ctx, hurried context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	hurried, hurry := context.WithCancel(context.Background())
	// Handled and not ignored: ranks would inherit that.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case sig := <-s.signals:
			cancel(supervisor.Interrupted{Signal: sig.(syscall.Signal)})
		case <-done:
			return
		}
		select {
		case <-s.signals:
			s.launcher.Hurry()
			hurry()
		case <-done:
		}
	})
	return ctx, hurried, func() {
		close(done)
		wg.Wait()
		signal.Stop(s.signals)
		cancel(nil)
		hurry()
	}
}

// close ends the agents and removes what the session made outside of the run's
// home.
func (s *session) close() error {
	s.stopProbe()
	<-s.probed
	err := s.launcher.Close()
	if s.tmp != "" {
		err = errors.Join(err, os.RemoveAll(s.tmp))
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(s.run.Dir, "scratch")), s.lock.Close())
}
