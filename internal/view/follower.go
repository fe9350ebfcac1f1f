package view

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/vitals"
)

// mostNews is how many messages a Follower keeps.
const mostNews = 50

// Follower computes the status of a run from its events, which it gets one at a time. It does not keep the
// events. Only one goroutine may use it.
type Follower struct {
	live  *Live
	ranks ranksFolder
	news  []News
	hosts int // of the latest placement
	gpus  int
}

// News is a message about a run.
type News struct {
	Time time.Time
	Text string // a text without control characters
}

// NewFollower returns a Follower of a run.
func NewFollower(run home.Run) *Follower { return &Follower{live: &Live{Options: Options{Run: run}}} }

// Add adds an event.
func (f *Follower) Add(e job.Event) {
	f.live.Fold(e)
	f.ranks.add(e)
	if e.Kind == job.KindCreated && e.Spec != nil {
		f.live.Spec = *e.Spec
	}
	if e.Kind == job.KindPlaced && e.Placement != nil {
		hosts := map[string]bool{}
		f.gpus = 0
		for _, r := range e.Placement.Ranks {
			hosts[r.Host] = true
			f.gpus += len(r.Devices)
		}
		f.hosts = len(hosts)
	}
	if e.Kind == job.KindCreated {
		return // the screen says which run it is
	}
	for _, line := range f.live.eventLines(e) {
		f.news = append(f.news, News{e.Time, text.Printable(line)})
	}
	if more := len(f.news) - mostNews; more > 0 {
		f.news = slices.Delete(f.news, 0, more)
	}
}

// Places returns how many hosts and GPUs the gang has. It returns zeros while the gang has none yet.
func (f *Follower) Places() (hosts, gpus int) { return f.hosts, f.gpus }

// News returns the latest messages, the oldest first.
func (f *Follower) News() []News { return slices.Clone(f.news) }

// Status returns the status of the run after the events so far. If state is not empty and the run has not
// ended, the status has state as the state of the run. The caller passes a state, for instance, if the
// controller is gone. v may be nil.
func (f *Follower) Status(state job.State, v *vitals.Vitals) Status {
	r := f.live.Report()
	if state != "" && !r.State.Final() {
		r.State = state
	}
	return newStatus(f.live.Run, r, f.ranks.now(r), v)
}
