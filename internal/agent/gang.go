package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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

	ranks   []*rank // complete once ready is closed
	ready   chan struct{}
	release chan struct{} // closed: stuck pumps give up
	stuck   sync.Once
	broken  chan job.Line // at most one: the logs cannot be written

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
		exits:   make(chan *rank, len(start.Ranks)),
	}
}

// prepareAhead is how many ranks may be prepared before their start: each holds
// seven descriptors until then, and four afterwards.
const prepareAhead = 8

// prepared is a rank whose log files and pipes are there, or why they are not.
type prepared struct {
	rank    *rank
	streams []*os.File // of the rank's process
	err     error
}

// prepare makes the ranks' log files and pipes, ahead of their start, up to the
// first that fails.
func (g *gang) prepare(to chan<- prepared) {
	defer close(to)
	if dir := string(g.start.CheckpointDir); dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			to <- prepared{err: fmt.Errorf("make the checkpoint directory: %w", err)}
			return
		}
	}
	for _, want := range g.start.Ranks {
		rank, streams, err := newRank(int(want.Rank), string(g.start.LogDir), want.Stdin)
		if err != nil {
			to <- prepared{err: err}
			return
		}
		for _, s := range []*stream{rank.out, rank.err} {
			p := &progress{steps: int(g.start.Steps), emit: func(found job.Progress) {
				g.reports.event(job.Event{Time: time.Now(), Kind: job.KindProgress, Rank: rank.number, Host: g.host, Progress: &found})
			}}
			s.bell, s.seen, s.stuck, s.end = &g.bell, p.scan, g.logStuck, p.flush
		}
		to <- prepared{rank: rank, streams: streams}
	}
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
	var kill, stray, round <-chan time.Time
	var deadline time.Time
	gone := ctx.Done()
	end := func(grace time.Duration) {
		if !g.stopping {
			g.stopping, g.stopped = true, time.Now()
		}
		g.signalAll(unix.SIGTERM)
		kill, stray = time.After(grace), time.After(min(grace, strayGrace))
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
				swept = true
				end(min(g.grace(), strayGrace))
			}
		}
		if g.alive > 0 {
			change = nil // exits tells
		}
		select {
		case r := <-g.exits:
			g.exited(r)
		case <-change:
		case grace := <-stop:
			end(grace)
		case <-gone:
			gone = nil
			end(min(g.grace(), strayGrace))
		case line := <-g.broken:
			g.reports.line(line)
			g.reports.event(job.Event{Time: time.Now(), Kind: job.KindStop, Host: g.host, Text: line.Text})
		case <-stray:
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

func (g *gang) grace() time.Duration { return time.Duration(g.start.GraceMs) * time.Millisecond }

// launch starts the ranks in order; the first that cannot be started ends it.
func (g *gang) launch() {
	defer close(g.ready)
	ahead := make(chan prepared, prepareAhead)
	go g.prepare(ahead) // ends when all of it has been taken, below
	err := errors.New("the agent is ending")
	g.children.batch(func(fork starter) { err = g.startAll(fork, ahead) })
	for p := range ahead { // what is left after a failure
		if p.rank != nil {
			p.rank.abandon(p.streams)
			g.ranks = append(g.ranks, p.rank)
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

// startAll starts ranks as they are prepared, up to the first failure.
func (g *gang) startAll(fork starter, ahead <-chan prepared) error {
	paths := map[string]string{} // of programs that have been found
	workdir := string(g.start.Workdir)
	for p := range ahead {
		if p.err != nil {
			return p.err
		}
		r, want := p.rank, g.start.Ranks[g.alive]
		g.ranks = append(g.ranks, r)
		env := overlay(g.env, texts(want.Env))
		argv := texts(want.Argv)
		path, err := paths[argv[0]], error(nil)
		if path == "" {
			path, err = lookProgram(argv[0], workdir, env)
		}
		if err == nil {
			paths[argv[0]] = path
			err = r.fork(fork, g.group, path, argv, &syscall.ProcAttr{Dir: workdir, Env: env}, p.streams)
		}
		r.pump(p.streams, g.release)
		if err != nil {
			// The kernel says the same of a directory that cannot be entered.
			if dirErr := enterable(workdir); dirErr != nil {
				return fmt.Errorf("the working directory %q cannot be entered: %w", workdir, dirErr)
			}
			return err
		}
		g.alive++
		g.reports.event(job.Event{Time: time.Now(), Kind: job.KindStarted, Rank: r.number, Host: g.host, PID: r.child.pid})
		g.waiting.Go(func() {
			<-r.child.exited
			if r.child.status != 0 {
				r.drain()
			}
			g.exits <- r
		})
	}
	return nil
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
	if len(g.left()) == 0 {
		g.waiting.Wait()
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
