package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/supervisor/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The fakes below block and obey their contexts as the real parts do. They use the fake clock of a synctest
// bubble.

// gang says what happens in one attempt. After its life, it has the exits, unless its context ends first.
type gang struct {
	launch time.Duration // time until every rank has started
	life   time.Duration // time from then until the exits
	steps  int64         // reported at the end of life, one by one; -1 for none
	unread []string      // hosts that report before that that no line printed there was progress
	exits  []job.Exit
	left   []job.Unreaped
	err    error
	// endErr is returned together with the exits of the ended ranks if ctx ends.
	endErr  error
	catches bool // ranks catch SIGTERM and exit with 0
	// unstarted is true if ranks remain unstarted when ctx ends before all ranks have started.
	unstarted bool
	dying     time.Duration // time from the first exit until all ranks are gone, even if ctx ends
	// saves is the checkpoint that is in the directory afterwards.
	saves *job.Checkpoint
	older []*job.Checkpoint // beside it
	// curve is reported when every rank has started, if it has a Kind. If the ranks are asked for a checkpoint,
	// they have written it after the time answers. If quits is true, they then exit.
	curve   job.CurveVerdict
	answers time.Duration
	quits   bool
	deaf    int // number of hosts on which no rank handles the signal that asks for a checkpoint
}

type fakeLauncher struct {
	t      *testing.T
	gangs  []gang // the gang of each attempt
	disk   *fakeCheckpoints
	placer *fakePlacer
	runs   []job.Attempt
	asked  fakeAsker
}

// fakeAsker asks the ranks of the gang that is running.
type fakeAsker struct {
	mu               sync.Mutex
	answer           func()
	asks, withdrawns int
	err              error
}

func (f *fakeAsker) set(answer func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

func (f *fakeAsker) Ask(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks++
	if f.err == nil && f.answer != nil {
		f.answer()
	}
	return f.err
}

func (f *fakeAsker) Withdraw(context.Context) error { f.withdrawns++; return nil }

func (f *fakeLauncher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	f.runs = append(f.runs, a)
	if f.placer.held != 1 {
		f.t.Errorf("attempt %d runs while %d leases are held", a.Number, f.placer.held)
	}
	if a.Number > len(f.gangs) {
		f.t.Errorf("attempt %d was not expected", a.Number)
		return job.Outcome{}, errors.New("not expected")
	}
	g := f.gangs[a.Number-1]
	if g.saves != nil && g.answers == 0 {
		defer f.disk.put(g.saves, g.older)
	}
	if !pause(ctx, g.launch) {
		return f.end(a, emit, g)
	}
	for _, r := range a.Placement.Ranks {
		emit(job.Event{Kind: job.KindStarted, Rank: r.Rank, Host: r.Host, PID: 100 + r.Rank})
	}
	emit(job.Event{Kind: job.KindAllStarted})
	left, leave := context.WithCancel(ctx)
	defer leave()
	ring := make(chan struct{}, 9)
	f.asked.set(func() {
		ring <- struct{}{}
		if g.answers == 0 {
			return
		}
		time.AfterFunc(g.answers, func() {
			if f.disk.put(g.saves, g.older); g.quits {
				leave()
			}
		})
	})
	if g.curve.Kind != "" {
		emit(job.Event{Kind: job.KindCurve, Curve: &g.curve, Text: g.curve.Text})
	}
	if g.deaf > 0 {
		select {
		case <-left.Done():
		case <-ring:
			for i, h := range a.Placement.Hosts {
				reached := 1
				if i < g.deaf {
					reached = 0
				}
				emit(job.Event{Kind: job.KindSignal, Host: h.Name, Reached: &reached})
			}
		}
	}
	if !pause(left, g.life) && ctx.Err() != nil {
		return f.end(a, emit, g)
	}
	if g.err != nil {
		return job.Outcome{}, g.err
	}
	for _, host := range g.unread {
		emit(job.Event{Kind: job.KindUnread, Host: host})
	}
	if g.steps >= 0 {
		emit(job.Event{Kind: job.KindProgress, Rank: 0, Host: "h1", Progress: &job.Progress{Step: g.steps, Total: 100, Epoch: -1}})
	}
	g.exits = slices.Clone(g.exits) // gangs are used more than once
	for i, x := range g.exits {
		x.Time = time.Now()
		g.exits[i] = x
		emit(job.Event{Kind: job.KindExit, Exit: &x})
		if !x.Good() && !x.Stopped {
			emit(job.Event{Kind: job.KindStop, Stop: job.StopFailure, Text: x.String()})
		}
	}
	time.Sleep(g.dying)
	return job.Outcome{Exits: g.exits, Unreaped: g.left}, nil
}

// toldToEnd is the text of a launcher whose context has ended.
const toldToEnd = "gangrun was told to end the gang"

// end ends the gang as a launcher does, with SIGTERM and within the grace period.
func (f *fakeLauncher) end(a job.Attempt, emit func(job.Event), g gang) (job.Outcome, error) {
	emit(job.Event{Kind: job.KindStop, Stop: job.StopOrder, Text: toldToEnd})
	time.Sleep(time.Duration(a.Grace))
	var o job.Outcome
	for _, r := range a.Placement.Ranks {
		x := stopped(signalled(r.Rank, 15))
		if g.catches {
			x = stopped(exited(r.Rank, 0))
		}
		if g.unstarted {
			x = job.Exit{Rank: r.Rank, Status: job.Unstarted, Text: "cancelled"}
		}
		x.Host = r.Host
		emit(job.Event{Kind: job.KindExit, Exit: &x})
		o.Exits = append(o.Exits, x)
	}
	return o, g.endErr
}

type fakePlacer struct {
	wait time.Duration
	err  error
	full bool // there is no place if anything is excluded
	lose time.Duration
	deaf bool // keeps waiting when ctx has ended
	bare bool // GPUs have no UUIDs: the GPU of each host is GPU0
	held int
	nots []job.Excluded
}

// Hold implements Holder for a gang that was placed before. Its lease is lost after the time lose.
func (f *fakePlacer) Hold(job.Placement) (context.Context, func()) {
	f.held++
	held, lost := f.lease(context.Background())
	return held, func() { lost(); f.held-- }
}

// lease returns a lease that is lost after the time lose. Only the first lease is lost.
func (f *fakePlacer) lease(ctx context.Context) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	if f.lose == 0 {
		return held, func() { cancel(nil) }
	}
	timer := time.AfterFunc(f.lose, func() { cancel(errors.New("the lock file is gone")) })
	f.lose = 0
	return held, func() { timer.Stop(); cancel(nil) }
}

func (f *fakePlacer) Place(ctx context.Context, spec job.Spec, not job.Excluded, emit func(job.Event)) (Lease, error) {
	f.nots = append(f.nots, not)
	emit(job.Event{Kind: job.KindState, State: job.StateWaiting, Text: "2 GPUs are held by r0"})
	if !pause(ctx, f.wait) && !f.deaf {
		return Lease{}, context.Cause(ctx)
	}
	if f.err != nil {
		return Lease{}, f.err
	}
	if f.full && !not.Empty() {
		return Lease{}, NoPlacement{Text: "no other host", Hint: "add hosts"}
	}
	held, release := f.lease(ctx)
	f.held++
	placement := place(spec.Ranks)
	for i := range placement.Ranks {
		if f.bare {
			placement.Ranks[i].Devices = []string{"GPU0"}
		}
	}
	return Lease{
		Placement:   placement,
		Explanation: job.Explanation{Why: []string{"it fits"}},
		Held:        held,
		Release:     func() { release(); f.held-- },
	}, nil
}

// place gives each rank a host and a GPU of its own.
func place(ranks int) job.Placement {
	var p job.Placement
	for i := range ranks {
		host := fmt.Sprintf("h%d", i+1)
		p.Ranks = append(p.Ranks, job.Rank{Rank: i, Host: host, Devices: []string{fmt.Sprintf("GPU-%d", i)}, LocalSize: 1, Node: i})
		p.Hosts = append(p.Hosts, job.Host{Name: host})
	}
	return p
}

type fakeChecker struct {
	wait     time.Duration
	findings []job.Finding
	err      error
	live     bool // findings are emitted too
	calls    int
}

func (f *fakeChecker) Check(ctx context.Context, _ job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	f.calls++
	emit(job.Event{Kind: job.KindStarted, Attempt: 0, Rank: 0, Host: "h1"})
	if !pause(ctx, f.wait) {
		return nil, ctx.Err()
	}
	for _, x := range f.findings {
		if f.live {
			emit(job.Event{Kind: job.KindFinding, Finding: &x})
		}
	}
	return f.findings, f.err
}

type fakeCheckpoints struct {
	mu     sync.Mutex // guards newest and older
	newest *job.Checkpoint
	older  []*job.Checkpoint // the latest first
	notes  []string
	err    error
	wait   time.Duration
	freeze bool // nothing answers until the run is being ended
	late   bool // a search may end after the run
	// infinite has the checkpoints with NaN or infinite numbers.
	infinite []job.Checkpoint
	parts    []saves.Found // the checkpoints that Newest does not find
}

// put sets the checkpoints of the directory.
func (f *fakeCheckpoints) put(newest *job.Checkpoint, older []*job.Checkpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest, f.older = newest, older
}

func (f *fakeCheckpoints) Newest(ctx context.Context, dir string, not []job.Checkpoint) (*job.Checkpoint, []string, error) {
	if dir != "/ckpt" {
		return nil, nil, fmt.Errorf("unexpected directory %q", dir)
	}
	if _, limited := ctx.Deadline(); limited && f.freeze {
		time.Sleep(10 * time.Minute) // whatever ctx says
	}
	if !pause(ctx, f.wait) {
		return nil, nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.notes, f.err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range append([]*job.Checkpoint{f.newest}, f.older...) {
		if c != nil && !slices.ContainsFunc(not, func(n job.Checkpoint) bool { return retry.SameCheckpoint(&n, c) }) {
			found := *c
			return &found, f.notes, nil
		}
	}
	return nil, f.notes, nil
}

// Scan returns the checkpoints, and the parts of unfinished checkpoints.
func (f *fakeCheckpoints) Scan(string) (found []saves.Found, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range append([]*job.Checkpoint{f.newest}, f.older...) {
		if c != nil {
			found = append(found, saves.Found{Path: c.Path, Step: c.Step, Kind: "ckpt", Bytes: c.Bytes, Files: 1, Time: c.Time})
		}
	}
	return append(found, f.parts...), nil
}

// NewestFinite ignores the checkpoints in infinite.
func (f *fakeCheckpoints) NewestFinite(ctx context.Context, dir string, not []job.Checkpoint) (*job.Checkpoint, []string, error) {
	return f.Newest(ctx, dir, slices.Concat(not, f.infinite))
}
