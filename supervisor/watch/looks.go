package watch

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const (
	// moreLooks is how many further looks at the stacks tell ranks that wait from ranks that go round a loop.
	moreLooks = 2
	// quickLook is how long each of these may take.
	quickLook = 3 * time.Second
)

// Moving reports whether ranks use CPU time, so that further looks at their stacks may show them at other places.
func (w *Watch) Moving() bool {
	return slices.ContainsFunc(w.living(), func(r int) bool { return !w.asleep(w.ranks[r]) })
}

// Looks collects stacks by read: once within limit, and twice more if ranks use CPU time (moving). It stops as soon as read does
// not give the stacks of all ranks. The latest stacks are the last.
func Looks(limit time.Duration, moving bool, read func(limit time.Duration) []job.RankStack) [][]job.RankStack {
	unread := func(s job.RankStack) bool { return len(s.Threads) == 0 }
	looks := [][]job.RankStack{read(limit)}
	for moving && len(looks) <= moreLooks {
		next := read(min(limit, quickLook))
		if len(next) < len(looks[0]) || slices.ContainsFunc(next, unread) {
			break
		}
		looks = append(looks, next)
	}
	return looks
}

// Latest returns the latest of these looks; nil if there is none.
func Latest(looks [][]job.RankStack) []job.RankStack {
	if len(looks) == 0 {
		return nil
	}
	return looks[len(looks)-1]
}
