package watch

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const (
	// moreLooks is the number of additional looks at the stacks. They distinguish ranks that wait from ranks
	// that are in a loop.
	moreLooks = 2
	// quickLook is the time limit of each additional look.
	quickLook = 3 * time.Second
)

// Moving reports whether ranks use CPU time, so that further looks at their stacks may show them at other places.
func (w *Watch) Moving() bool {
	return slices.ContainsFunc(w.living(), func(r int) bool { return !w.asleep(w.ranks[r]) })
}

// Looks calls read with limit. If moving is true, because ranks use CPU time, it calls read up to moreLooks more
// times, each with a limit of at most quickLook. It stops when one of these further calls does not return the stacks
// of all ranks, and drops what that call has returned. The stacks are in the order of the calls.
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

// Latest returns the stacks of the last of the looks that Looks has returned. It returns nil if looks is empty.
func Latest(looks [][]job.RankStack) []job.RankStack {
	if len(looks) == 0 {
		return nil
	}
	return looks[len(looks)-1]
}
