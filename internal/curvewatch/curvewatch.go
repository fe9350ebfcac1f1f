// Package curvewatch judges the curves of a job while its gang runs. It finds metrics in the output of the
// ranks, in files, and in what ranks write to GANGRUN_PROGRESS_FD. It emits an event for each verdict.
package curvewatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/metrics"
)

// Runner runs one attempt of a gang to its end.
type Runner interface {
	Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)
}

// Options says how a Watcher judges the curves of a job, and where it finds the metrics.
type Options struct {
	Metric string      // the name of the metric by which to judge; if it is "", gangrun chooses
	Higher *bool       // whether higher values of Metric are better; nil if its name tells that
	Setup  judge.Setup // everything else that is known; its field Higher is not used
	Dirs   []string    // directories in which the job may write files with metrics
	// Earlier returns the curves of earlier runs of the job that ended well. It may be nil.
	Earlier func(context.Context) []Curve
	// StepOf returns the step of the checkpoint at a path, or -1 if the step is not known.
	StepOf func(checkpoint string) int64
}

const (
	// look is the time between two looks at the metrics.
	look = time.Second
	// lastLook is how long the watch may take to end after the gang. It takes long if a file system does not answer.
	lastLook = time.Second
	// maxTold limits how many reports of progress are kept until the next look.
	maxTold = 4096
	// maxTellers limits how many ranks' reports of progress are used as curves. Usually, all ranks report the same.
	maxTellers = 4
)

// Watcher is a Runner that judges the curves of the job while its gang runs.
type Watcher struct {
	runner  Runner
	options Options
	track   *track
	files   *files        // nil before the first attempt, and as long as an earlier reader of the files has not ended
	left    chan struct{} // closed when the readers of the last attempt have ended; nil before the first
	spent   float64       // GPU-seconds of earlier attempts
	lack    lack
}

// New returns a Watcher for the gangs of a job. runner runs these gangs, one after the other.
func New(runner Runner, o Options) *Watcher {
	return &Watcher{runner: runner, options: o, lack: lack{metric: o.Metric}, track: newTrack(o.Metric, o.Higher, o.Setup)}
}

// Judged returns the curve by which the run was judged. ok is false if there is no such curve. Judged must not
// be called during Run.
func (w *Watcher) Judged() (c Curve, ok bool) { return w.track.judged() }

// Run runs an attempt to its end. Missing or damaged metrics do not disturb the gang. Readers that wait for a file
// system that hangs cannot be ended. As long as readers of an earlier attempt wait, the curves of further attempts
// are not judged, so that at most one set of readers is left behind.
func (w *Watcher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if a.Trial() {
		return w.runner.Run(ctx, a, emit)
	}
	if !w.ended() {
		emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: "the curves of this attempt are not judged: the file system with the metrics of the last one does not answer"})
		return w.runner.Run(ctx, a, emit)
	}
	var mu sync.Mutex
	over := false
	serial := func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			emit(e)
		}
	}
	began := time.Now()
	if info, err := os.Stat(a.LogDir); a.Adopt && err == nil {
		began = info.ModTime() // about the time at which the earlier controller started the gang
	}
	t := &told{ranks: map[int]bool{}}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	found := make(chan batch)
	var readers, judging sync.WaitGroup
	files := w.files
	if files == nil {
		files = newFiles(w.options.Dirs, began)
	}
	files.again(began, w.step(a))
	for _, r := range []*reader{{from: began, files: newLogs(a, w.options.Metric, t.tellers).all}, {from: began, files: files.all}} {
		readers.Go(func() { r.run(watching, found) })
	}
	earlier := make(chan []Curve, 1)
	ask := sync.OnceFunc(func() {
		if w.options.Earlier != nil && w.track.earlier == nil {
			readers.Go(func() { earlier <- w.options.Earlier(watching) })
		}
	})
	judging.Go(func() { w.watch(watching, a, began, t, found, ask, earlier, serial) })
	outcome, err := w.runner.Run(ctx, a, func(e job.Event) {
		t.see(e)
		serial(e)
	})
	mu.Lock()
	over = true
	mu.Unlock()
	stop()
	judging.Wait()
	if text := w.lack.atEnd(w.track, outcome.Good(len(a.Placement.Ranks))); text != "" {
		emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: text})
	}
	w.spent += gpus(a) * time.Since(began).Seconds()
	left := make(chan struct{})
	go func() { defer close(left); readers.Wait() }()
	w.left, w.files = left, nil
	if w.ended() {
		w.files = files
	}
	return outcome, err
}

// ended reports whether the readers of the last attempt have ended, or do so within lastLook.
func (w *Watcher) ended() bool {
	if w.left == nil {
		return true
	}
	select {
	case <-w.left:
		return true
	case <-time.After(lastLook):
		return false
	}
}

// step returns the step at which an attempt begins.
func (w *Watcher) step(a job.Attempt) int64 {
	if a.ResumeFrom == "" {
		return 0
	}
	return w.options.StepOf(a.ResumeFrom)
}

// gpus returns how many GPUs an attempt has. If it has none, gpus returns how many ranks it has.
func gpus(a job.Attempt) float64 {
	held := map[string]bool{}
	for _, r := range a.Placement.Ranks {
		for _, d := range r.Devices {
			held[job.DeviceID(r.Host, d)] = true
		}
	}
	if len(held) == 0 {
		return float64(max(1, len(a.Placement.Ranks)))
	}
	return float64(len(held))
}

// watch judges the found values until ctx ends. At the first point, it calls ask, so that earlier delivers the curves
// of earlier runs. It does not ask before, because most jobs have no curve to compare, and reading a long history takes
// time.
func (w *Watcher) watch(ctx context.Context, a job.Attempt, began time.Time, t *told, found <-chan batch, ask func(), earlier <-chan []Curve, emit func(job.Event)) {
	w.track.begin(w.step(a))
	each := gpus(a)
	add := func(source string, p metrics.Point, at time.Time) {
		ask()
		w.track.add(source, p.Series, point{step: p.Step, byEpoch: p.ByEpoch, at: at, gpu: w.spent + each*at.Sub(began).Seconds(), value: p.Value})
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case w.track.earlier = <-earlier:
			w.track.stale = true
		case b := <-found:
			w.track.total(b.total)
			for i, p := range b.points {
				add(b.source, p, b.time(i, began))
			}
		case <-tick.C:
			for _, e := range t.take() {
				w.lack.progress = true
				w.track.total(totalOf(*e.Progress))
				for _, p := range pointsOf(*e.Progress) {
					add(fmt.Sprintf("progress of rank %d", e.Rank), p, time.Now())
				}
			}
			if text := w.lack.during(w.track, time.Now()); text != "" {
				emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: text})
			}
			for _, v := range w.track.verdicts() {
				emit(job.Event{Time: time.Now(), Kind: job.KindCurve, Attempt: a.Number, Curve: &v, Text: v.Text})
			}
		}
	}
}

// told has the progress that ranks have reported since the last look.
type told struct {
	mu     sync.Mutex
	events []job.Event
	ranks  map[int]bool // the ranks that have reported any progress
}

// see keeps an event of the gang if it reports progress.
func (t *told) see(e job.Event) {
	if e.Kind != job.KindProgress || e.Progress == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ranks[e.Rank] && len(t.ranks) == maxTellers {
		return
	}
	t.ranks[e.Rank] = true
	if len(t.events) < maxTold {
		t.events = append(t.events, e)
	}
}

func (t *told) take() []job.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.events
	t.events = nil
	return all
}

// tellers returns the ranks that have reported progress.
func (t *told) tellers() (ranks []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.ranks {
		ranks = append(ranks, r)
	}
	return ranks
}

// pointsOf returns the values that a rank has reported with its progress.
func pointsOf(p job.Progress) (all []metrics.Point) {
	if p.HasLoss() {
		all = append(all, metrics.Point{Series: "loss", Step: p.At(), ByEpoch: p.ByEpoch, Value: p.LossValue()})
	}
	for name, v := range p.Metrics {
		all = append(all, metrics.Point{Series: name, Step: p.At(), ByEpoch: p.ByEpoch, Value: v})
	}
	return all
}

// totalOf returns the number of planned steps that a rank has reported. It returns 0 if the rank has reported no number
// for the whole run.
func totalOf(p job.Progress) int64 {
	if p.Restarts || p.Total < p.At() {
		return 0
	}
	return p.Total
}

// logs has the log files of an attempt's ranks that are read. These are the logs of the first ranks, of the last rank,
// which prints the loss of pipelines, and of the ranks that report progress.
type logs struct {
	dir     string
	metric  string // the name of the metric to judge by
	ranks   int
	tellers func() []int
	known   map[string]*source
}

// firstRanks is how many ranks count as the first ranks.
const firstRanks = 3

func newLogs(a job.Attempt, metric string, tellers func() []int) *logs {
	return &logs{dir: a.LogDir, metric: metric, ranks: len(a.Placement.Ranks), tellers: tellers, known: map[string]*source{}}
}

// all returns the files to read now.
func (l *logs) all(context.Context) (all []*source) {
	wanted := append(l.tellers(), l.ranks-1)
	for rank := range min(firstRanks, l.ranks) {
		wanted = append(wanted, rank)
	}
	for _, rank := range wanted {
		for _, stream := range []string{"out", "err"} {
			path := filepath.Join(l.dir, job.LogName(rank, stream))
			if l.known[path] == nil {
				l.known[path] = &source{name: path, file: metrics.NewFile(path)}
				l.known[path].file.Metric = l.metric
			}
		}
	}
	for _, s := range l.known {
		all = append(all, s)
	}
	return all
}
