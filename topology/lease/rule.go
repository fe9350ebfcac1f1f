package lease

import (
	"slices"
	"time"
)

// Horizon is how long a holder that has not told when it ends is taken to hold
// its GPUs still, when it is asked whether a job with a time limit may go ahead of
// an older ticket. It is the most that such jobs delay a ticket.
const Horizon = 2 * time.Minute

// holding is how a GPU is used.
type holding struct {
	run   string    // empty where it is not known
	until time.Time // zero where it is not known
}

// view is how things stand on a host at one moment: what the rule is applied to.
type view struct {
	now time.Time
	// held are the GPUs that somebody has, by their key; others are idle.
	held map[string]holding
	key  func(device string) string
	// tickets are those that count, the oldest first.
	tickets []Ticket
}

// ahead returns the tickets that are older than t, the oldest first.
func (v view) ahead(t Ticket) []Ticket {
	var older []Ticket
	for _, u := range v.tickets {
		if u.Run != t.Run && u.before(t) {
			older = append(older, u)
		}
	}
	slices.SortStableFunc(older, compare)
	return older
}

// usable reports whether device is idle for t: nobody has it, or its own run.
func (v view) usable(device string, t Ticket) bool {
	h, held := v.held[v.key(device)]
	return !held || h.run == t.Run
}

// claims returns how many of the usable GPUs each of the tickets, the oldest
// first, can claim when nobody can use those in gone. It is a matching between
// tickets and GPUs: each claim is found by an augmenting path, which moves older
// claims between GPUs but ends none.
func (v view) claims(tickets []Ticket, gone []string) []int {
	claimant := make(map[string]int) // device to the index of its ticket
	var seen map[string]bool
	var claim func(int) bool
	claim = func(i int) bool {
		for _, d := range tickets[i].Devices {
			if seen[d] || slices.Contains(gone, d) || !v.usable(d, tickets[i]) {
				continue
			}
			seen[d] = true
			if j, taken := claimant[d]; !taken || j != i && claim(j) {
				claimant[d] = i
				return true
			}
		}
		return false
	}
	counts := make([]int, len(tickets))
	for i, t := range tickets {
		for counts[i] < t.Count {
			if seen = make(map[string]bool); !claim(i) {
				break
			}
			counts[i]++
		}
	}
	return counts
}

// earliest returns when t could start at the earliest if all idle GPUs were its.
func (v view) earliest(t Ticket) time.Time {
	if t.Count == 0 {
		return later(v.now, t.NotBefore)
	}
	var free []time.Time
	for _, d := range t.Devices {
		switch h := v.held[v.key(d)]; {
		case v.usable(d, t):
			free = append(free, v.now)
		case h.until.IsZero():
			free = append(free, v.now.Add(Horizon))
		default: // one over its limit is about to end
			free = append(free, later(v.now, h.until))
		}
	}
	slices.SortFunc(free, time.Time.Compare)
	return later(free[t.Count-1], t.NotBefore)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// against returns the older tickets that would be worse off if t took the idle
// GPUs take: those that forbid it.
func (v view) against(t Ticket, take []string) []Ticket {
	older := v.ahead(t)
	if len(older) == 0 || len(take) == 0 {
		return nil
	}
	before, after := v.claims(older, nil), v.claims(older, take)
	var hurt []Ticket
	for i, u := range older {
		if after[i] >= before[i] {
			continue
		}
		if t.Limit > 0 && !v.now.Add(t.Limit).After(v.earliest(u)) {
			continue
		}
		hurt = append(hurt, u)
	}
	return hurt
}

// spare returns as many of the idle GPUs of t as it may take now, the first in
// the order of its Devices; any part of them it may take as well. It may take others
// instead, but not more.
func (v view) spare(t Ticket) []string {
	var take []string
	for _, d := range t.Devices {
		if _, held := v.held[v.key(d)]; held {
			continue
		}
		if with := append(slices.Clip(take), d); len(v.against(t, with)) == 0 {
			take = with
		}
	}
	return take
}
