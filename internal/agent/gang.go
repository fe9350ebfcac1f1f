package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Limits of ending a gang.
const (
	// strayGrace bounds the grace of processes whose rank is dead or whose
	// controller is gone.
	strayGrace = 2 * time.Second
	// killEvery is the time between two rounds of SIGKILL.
	killEvery = 20 * time.Millisecond
	// killLimit is when a process that does not die of SIGKILL (it hangs in the
	// kernel) is given up and reported as unreaped.
	killLimit = 10 * time.Second
	// drainLimit bounds the wait for what a dead rank had written.
	drainLimit = 500 * time.Millisecond
)

// gang is this host's share of one attempt.
type gang struct {
	host     string
	start    *wire.Start
	env      []string
	children *children
	group    *cgroup
	kernel   *kernel
	reports  *reports
	bell     bell // output has grown or ended

	wiring   *wiring  // nil unless the ranks speak PMI-1
	ompi     *openMPI // nil unless the ranks are started by Open MPI
	joined   int      // ranks that have, when the controller was last told
	aborting map[int]bool

	ranks   []*rank // complete once ready is closed
	ready   chan struct{}
	release chan struct{} // closed: stuck pumps give up
	stuck   sync.Once
	broken  chan job.Line // at most one: the logs cannot be written

	begun    time.Time
	releases chan *wire.Barrier
	looks    chan struct{}
	spawns   chan *wire.Spawn
	relays   chan *wire.Relay
	exits    chan *rank
	waiting  sync.WaitGroup // who sends to exits
	alive    int            // leaders that have not exited
	stopping bool
	stopped  time.Time // when stopping became true
	killing  bool
}

func newGang(host string, start *wire.Start, env []string, c *children, group *cgroup, reports *reports) *gang {
	return &gang{
		host: host, start: start, env: env, children: c, group: group, reports: reports,
		kernel:  watchKernel(),
		ready:   make(chan struct{}),
		release: make(chan struct{}),
		broken:  make(chan job.Line, 1),

		aborting: map[int]bool{},
		begun:    time.Now(),
		releases: make(chan *wire.Barrier),
		looks:    make(chan struct{}),
		spawns:   make(chan *wire.Spawn),
		relays:   make(chan *wire.Relay),
		exits:    make(chan *rank, len(start.Ranks)),
	}
}

// launchBatch is how many ranks are started in a row, before their output and
// exits are looked at. Each holds seven descriptors until then, four afterwards.
const launchBatch = 16

// prepared is a rank whose log files and pipes are there, ready to be started.
type prepared struct {
	rank    *rank
	streams []*os.File // of the rank's process
	path    string
	argv    []string
	attr    syscall.ProcAttr
	err     error // why it cannot be started
}

// prepare makes a rank's log files and pipes and finds its program.
func (g *gang) prepare(want *wire.RankStart, paths map[string]program) prepared {
	r, streams, err := newRank(int(want.Rank), string(g.start.LogDir), want.Stdin)
	if err != nil {
		return prepared{err: err}
	}
	for _, s := range []*stream{r.out, r.err} {
		p := &progress{steps: int(g.start.Steps), emit: func(found job.Progress) {
			g.reports.event(job.Event{Time: time.Now(), Kind: job.KindProgress, Rank: r.number, Host: g.host, Progress: &found})
		}}
		s.bell, s.seen, s.stuck, s.end = &g.bell, p.scan, g.logStuck, p.flush
	}
	p := prepared{rank: r, streams: streams, argv: texts(want.Argv)}
	p.attr = syscall.ProcAttr{Dir: string(g.start.Workdir), Env: overlay(g.env, texts(want.Env))}
	if dir := string(want.Workdir); dir != "" {
		p.attr.Dir = dir
	}
	found, ok := paths[p.argv[0]]
	if !ok {
		found.path, p.err = lookProgram(p.argv[0], p.attr.Dir, p.attr.Env)
		if p.err == nil && g.wiring != nil {
			mpi, _ := mpiOf(found.path, p.attr.Env)
			found.direct = mpi == job.MPIMPICH
		}
		if p.err == nil && strings.Contains(p.argv[0], "/") == filepath.IsAbs(p.argv[0]) {
			paths[p.argv[0]] = found // what is relative hangs on the directory
		}
	}
	p.path = found.path
	if p.err == nil && g.wiring != nil {
		p.err = g.equip(&p, found.direct)
	}
	return p
}

// program is where a program was found; direct says that it speaks PMI itself.
type program struct {
	path   string
	direct bool
}

// equip gives a rank its PMI connection.
func (g *gang) equip(p *prepared, direct bool) error {
	env, file, err := g.wiring.equip(p.rank.number, len(g.ranks), direct)
	if err != nil {
		return err
	}
	p.attr.Env = overlay(p.attr.Env, env)
	if file != nil {
		p.streams = append(p.streams, file)
	}
	return nil
}

// logStuck is called by pumps that cannot write their log.
func (g *gang) logStuck(err error) {
	g.stuck.Do(func() {
		g.broken <- job.Line{Source: job.SourceAgent, Host: g.host, Rank: -1, Time: time.Now(), Text: err.Error()}
	})
}

// run starts the ranks and returns when every process of the gang is gone, or
// when what is left cannot be killed: then it names the ranks. The gang ends
// by itself, by stop (a grace period), or when ctx ends (the controller is
// gone).
func (g *gang) run(ctx context.Context, stop <-chan time.Duration) (unreaped []int32) {
	defer g.finish()
	g.launch()
	var kill, stray, round, abort, look <-chan time.Time
	var killAt, strayAt, deadline time.Time
	gone := ctx.Done()
	end := func(grace time.Duration) {
		if !g.stopping {
			g.stopping, g.stopped = true, time.Now()
		}
		if g.ompi != nil {
			g.ompi.abandon("another rank could not be started", true)
		}
		g.signalAll(unix.SIGTERM)
		// Who is told again to end gets no more time for it.
		killAt, strayAt = sooner(killAt, grace), sooner(strayAt, min(grace, strayGrace))
		kill, stray = time.After(time.Until(killAt)), time.After(time.Until(strayAt))
	}
	if g.ompi != nil {
		look = time.After(lookEvery)
	}
	if g.alive < len(g.start.Ranks) {
		end(g.grace()) // a rank could not be started: there is no gang
	}
	swept := false
	for {
		empty, change := g.children.empty()
		if g.alive == 0 {
			if empty {
				return nil
			}
			if !swept && !g.killing {
				wait := min(g.grace(), strayGrace)
				if g.ompi != nil && g.stopping {
					wait = min(wait, lastWords) // mpirun has nothing left to do but to talk
				}
				swept = true
				end(wait)
			}
		}
		if g.alive > 0 {
			change = nil // exits tells
		}
		select {
		case r := <-g.exits:
			g.exited(r)
		case <-change:
		case <-g.changed():
			if ranks := g.rewired(); len(ranks) > 0 {
				abort = time.After(abortWait)
			}
		case <-abort:
			abort = nil
			g.abort()
		case b := <-g.releases:
			g.wiring.release(b)
		case <-g.looks:
			g.tellWireup()
		case f := <-g.acts():
			f()
		case s := <-g.spawns:
			g.ompi.spawn(s)
		case r := <-g.relays:
			g.ompi.relay(r)
		case <-look:
			look = nil
			if g.ompi.look() {
				look = time.After(lookEvery)
			}
		case grace := <-stop:
			end(grace)
		case <-gone:
			gone = nil
			end(min(g.grace(), strayGrace))
		case line := <-g.broken:
			g.reports.line(line)
			g.reports.event(job.Event{Time: time.Now(), Kind: job.KindStop, Host: g.host, Text: line.Text})
		case <-stray:
			strayAt = time.Time{} // strays that come later have their own
			g.killStrays()
		case <-kill:
			g.killing, deadline = true, time.Now().Add(killLimit)
			round = time.After(0)
		case <-round:
			if time.Now().After(deadline) {
				return g.left()
			}
			g.group.kill()
			for _, p := range descendants(os.Getpid()) {
				p.send(unix.SIGKILL)
			}
			round = time.After(killEvery)
		}
	}
}

// sooner returns the time until which wait lasts from now on, or the earlier one
// that is set already.
func sooner(set time.Time, wait time.Duration) time.Time {
	if at := time.Now().Add(wait); set.IsZero() || at.Before(set) {
		return at
	}
	return set
}

func (g *gang) grace() time.Duration { return time.Duration(g.start.GraceMs) * time.Millisecond }

// launch starts the ranks in order; the first that cannot be started ends it.
func (g *gang) launch() {
	defer close(g.ready)
	var err error
	if job.MPI(g.start.Mpi) == job.MPIMPICH {
		g.wiring, err = newWiring(g.start, g.reports)
	}
	if job.MPI(g.start.Mpi) == job.MPIOpenMPI {
		g.ompi, err = newOpenMPI(g)
	}
	if dir := string(g.start.CheckpointDir); dir != "" {
		if err = os.MkdirAll(dir, 0o777); err != nil {
			err = fmt.Errorf("make the checkpoint directory: %w", err)
		}
	}
	paths := map[string]program{} // that have been found
	if err == nil && g.ompi != nil {
		if err = g.ompi.launch(); err == nil {
			return
		}
		g.ompi.giveUp()
	}
	for batch := range slices.Chunk(g.start.Ranks, launchBatch) {
		if err == nil {
			err = g.startBatch(batch, paths)
		}
	}
	if err == nil {
		return
	}
	for i, want := range g.start.Ranks[g.alive:] {
		exit := job.Exit{Rank: int(want.Rank), Host: g.host, Status: job.Unstarted, Time: time.Now(), Stopped: true, Text: "another rank could not be started"}
		if i == 0 {
			exit.Stopped, exit.Text, exit.Code = false, describe(want, err), startCode(err)
		}
		g.reports.event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
	}
}

// startBatch starts ranks up to the first failure: it prepares them, forks them
// in a row, and only then follows what they do.
func (g *gang) startBatch(wants []*wire.RankStart, paths map[string]program) (err error) {
	var batch []prepared
	for _, want := range wants {
		p := g.prepare(want, paths)
		if p.rank != nil {
			batch = append(batch, p)
			g.ranks = append(g.ranks, p.rank)
		}
		if err = p.err; err != nil {
			break
		}
	}
	forked := g.children.batch(func(fork starter) {
		for _, p := range batch {
			if p.err != nil {
				break
			}
			if forkErr := p.rank.fork(fork, g.group, p.path, p.argv, &p.attr, p.streams); forkErr != nil {
				err = forkErr
				break
			}
		}
	})
	if !forked {
		err = errors.New("the agent is ending")
	}
	for _, p := range batch {
		r := p.rank
		r.pump(p.streams, g.release)
		if r.child == nil {
			continue
		}
		g.alive++
		g.watch(r)
	}
	if err != nil {
		// The kernel says the same of a directory that cannot be entered.
		if dirErr := enterable(string(g.start.Workdir)); dirErr != nil {
			return fmt.Errorf("the working directory %q cannot be entered: %w", g.start.Workdir, dirErr)
		}
	}
	return err
}

// watch tells of the start of a rank, and sees to its end.
func (g *gang) watch(r *rank) {
	g.reports.event(job.Event{Time: time.Now(), Kind: job.KindStarted, Rank: r.number, Host: g.host, PID: r.child.pid})
	g.waiting.Go(func() {
		<-r.child.exited
		if r.child.status != 0 {
			r.drain()
		} else if g.wiring != nil {
			g.wiring.settle(r.number)
		}
		g.exits <- r
	})
}

// wanted is the environment that a rank is to have over the gang's.
func (g *gang) wanted(number int) [][]byte {
	i := slices.IndexFunc(g.start.Ranks, func(r *wire.RankStart) bool { return int(r.Rank) == number })
	return g.start.Ranks[i].Env
}

// texts turns what has travelled into what the kernel is given.
func texts(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, t := range raw {
		out[i] = string(t)
	}
	return out
}

// exited reports the end of a leader, with its last lines when it failed.
func (g *gang) exited(r *rank) {
	g.alive--
	exit := r.exit(g.host, g.stopping && r.child.when.After(g.stopped))
	switch {
	case g.wiring != nil:
		g.wiring.mark(&exit)
	case g.ompi != nil:
		g.ompi.mark(&exit)
	}
	if !exit.Good() {
		if exit.Signal == int(unix.SIGKILL) && !exit.Stopped || exit.Core {
			g.reports.line(g.kernel.lines(g.host)...)
		}
		g.reports.line(r.evidence(g.host)...)
	}
	g.reports.event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
}

// signalAll reaches every process of the gang: the ranks' process groups at
// once, then whatever has left them. SIGCONT lets stopped ones act on it.
func (g *gang) signalAll(sig unix.Signal) {
	groups := map[int]bool{}
	for _, r := range g.ranks {
		if r.child != nil && g.children.signal(r.child, sig) {
			g.children.signal(r.child, unix.SIGCONT)
			groups[r.child.pid] = true
		}
	}
	for _, p := range descendants(os.Getpid()) {
		if g.ompi != nil && g.ompi.own(p.pid) {
			continue
		}
		if pgid, err := unix.Getpgid(p.pid); err == nil && !groups[pgid] {
			p.send(sig)
			p.send(unix.SIGCONT)
		}
	}
}

// killStrays kills what does not descend from a living leader.
func (g *gang) killStrays() {
	var spared []int
	for _, r := range g.ranks {
		if r.child != nil && !closed(r.child.exited) {
			spared = append(spared, r.child.pid)
		}
	}
	for _, p := range descendants(os.Getpid()) { // parents come first
		if g.ompi != nil && g.ompi.own(p.pid) {
			continue
		}
		if slices.Contains(spared, p.pid) || slices.Contains(spared, p.parent) {
			spared = append(spared, p.pid)
		} else {
			p.send(unix.SIGKILL)
		}
	}
}

// left names the ranks that outlived SIGKILL.
func (g *gang) left() (ranks []int32) {
	for _, r := range g.ranks {
		if r.child != nil && !closed(r.child.exited) {
			ranks = append(ranks, int32(r.number))
		}
	}
	return ranks
}

// finish waits for the last bytes to reach the logs and closes everything.
func (g *gang) finish() {
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		for _, r := range g.ranks {
			r.pumps.Wait()
		}
	}()
	select {
	case <-pumped:
	case <-time.After(strayGrace): // a full disk, or a process that cannot be killed holds the pipe
		close(g.release)
		for _, r := range g.ranks {
			_ = r.out.pipe.Close()
			_ = r.err.pipe.Close()
		}
		<-pumped
	}
	for _, r := range g.ranks {
		_ = r.out.log.Close()
		_ = r.err.log.Close()
		if r.stdin != nil {
			_ = r.stdin.Close()
		}
	}
	g.kernel.close()
	if g.wiring != nil {
		g.wiring.close()
	}
	if g.ompi != nil {
		g.ompi.close()
	}
	if len(g.left()) == 0 {
		g.waiting.Wait()
		sweepShared(g.begun)
	}
}

// changed is rung when a rank has said something that the controller may want
// to know.
func (g *gang) changed() <-chan struct{} {
	if g.wiring == nil {
		return nil
	}
	return g.wiring.changed
}

// rewired tells the controller when the first and when the last rank of this
// host has joined, and returns ranks that have called MPI_Abort since.
func (g *gang) rewired() (aborting []int) {
	if up := g.wiring.wireup(); len(up.In) != g.joined && (g.joined == 0 || len(up.Silent) == 0) {
		g.joined = len(up.In)
		g.reports.wireup(up)
	}
	for _, rank := range g.wiring.aborted() {
		if !g.aborting[rank] {
			g.aborting[rank] = true
			aborting = append(aborting, rank)
		}
	}
	return aborting
}

func (g *gang) tellWireup() {
	switch {
	case g.wiring != nil:
		g.reports.wireup(g.wiring.wireup())
	case g.ompi != nil:
		g.ompi.look()
		g.reports.wireup(g.ompi.wireup())
	}
}

// lastWords is how long mpirun may go on after the last rank of a gang that is
// being ended.
const lastWords = 200 * time.Millisecond

// lookEvery is the time between two looks for ranks that have joined.
const lookEvery = 10 * time.Millisecond

// acts is what is to be done for Open MPI's processes.
func (g *gang) acts() <-chan func() {
	if g.ompi == nil {
		return nil
	}
	return g.ompi.do
}

// abort asks for the end of the gang where a rank that has called MPI_Abort
// does not end by itself.
func (g *gang) abort() {
	for _, r := range g.ranks {
		if r.child != nil && !closed(r.child.exited) && g.aborting[r.number] {
			g.reports.event(job.Event{Time: time.Now(), Kind: job.KindStop, Host: g.host, Text: fmt.Sprintf("rank %d on %s has called MPI_Abort", r.number, g.host)})
			return
		}
	}
}

// follow returns a follower for each stream of the named ranks, once they have
// been started.
func (g *gang) follow(ctx context.Context, ranks []int32) ([]*follower, error) {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var followers []*follower
	for _, r := range g.ranks {
		if slices.Contains(ranks, int32(r.number)) {
			followers = append(followers, &follower{stream: r.out}, &follower{stream: r.err})
		}
	}
	return followers, nil
}

// stdin returns the end of the rank's standard input to write to.
func (g *gang) stdin(ctx context.Context, number int) (*os.File, error) {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for _, r := range g.ranks {
		if r.number == number && r.stdin != nil {
			return r.stdin, nil
		}
	}
	return nil, fmt.Errorf("rank %d takes no standard input here", number)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
