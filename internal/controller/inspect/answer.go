package inspect

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

const (
	// lookEvery is the time between two looks for requests. Network file systems do not report new files.
	lookEvery = time.Second
	// stacksLimit is how long each host may take to collect the stacks of its ranks.
	stacksLimit = 8 * time.Second
	// restAfter is the shortest time between two collections. It exists because a collection stops ranks for a moment.
	restAfter = 2 * time.Second
	// keepAnswer is the time after which an answer that nobody has fetched is removed.
	keepAnswer = time.Minute
)

// Answerer answers the requests for the stacks of a run's ranks.
type Answerer struct {
	Run home.Run
	// Stacks collects the stacks of the gang that runs.
	Stacks func(ctx context.Context, limit time.Duration) []job.RankStack
	// Gang returns the attempt that runs, and its ranks that have not ended. If no gang runs, why is the
	// reason.
	Gang func() (attempt int, ranks []int, why string)
	// Group returns groups of the ranks whose stacks are equal.
	Group func([]job.RankStack) []job.StackGroup
}

// answered is an answer that was written.
type answered struct {
	id string
	at time.Time
}

// Listen answers requests until stop is called. It makes one collection at a time. Requests that come during
// a collection are answered together by the next one.
func (a Answerer) Listen() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		var kept []answered
		self := home.Self()
		next := time.NewTimer(lookEvery)
		defer next.Stop()
		for {
			select {
			case now := <-next.C:
				kept = slices.DeleteFunc(kept, func(old answered) bool {
					if now.Sub(old.at) < keepAnswer {
						return false
					}
					a.Run.ForgetStacks(old.id)
					return true
				})
			case <-ctx.Done():
				for _, old := range kept {
					a.Run.ForgetStacks(old.id)
				}
				return
			}
			rest := lookEvery
			if ids, _ := a.Run.TakeStacks(self); len(ids) > 0 { // the asking process reports errors
				kept = append(kept, a.answer(ctx, ids)...)
				rest = restAfter
			}
			next.Reset(rest)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// answer collects the stacks once, and writes an answer to each request.
func (a Answerer) answer(ctx context.Context, ids []string) (all []answered) {
	begun := time.Now()
	attempt, ranks, why := a.Gang()
	s := home.Stacks{Run: a.Run.ID, Attempt: attempt, At: begun, Refused: why, Stacks: []job.RankStack{}, Groups: []job.StackGroup{}, Missing: []int{}}
	if why == "" {
		s.Stacks = append(s.Stacks, a.Stacks(ctx, stacksLimit)...)
		s.Groups = append(s.Groups, a.Group(s.Stacks)...)
		for _, rank := range ranks {
			if !slices.ContainsFunc(s.Stacks, func(r job.RankStack) bool { return r.Rank == rank }) {
				s.Missing = append(s.Missing, rank)
			}
		}
		s.Took = job.Duration(time.Since(begun))
	}
	for _, id := range ids {
		if a.Run.AnswerStacks(id, s) == nil {
			all = append(all, answered{id, time.Now()})
		}
	}
	return all
}
