package lease

import (
	"slices"
	"time"
)

// If the end of a holder is not known, the ticket rule assumes that the holder keeps its GPUs for another Horizon.
// The rule uses this to decide whether a job with a time limit may go ahead of an older ticket. Jobs that go ahead
// delay a ticket by at most Horizon.
const Horizon = 2 * time.Minute

// holding says who holds a GPU, and until when.
type holding struct {
	run   string    // empty if it is not known
	until time.Time // zero if it is not known
}

// view is the state of a host at one moment. The ticket rule is applied to it.
type view struct {
	now time.Time
	// held has the GPUs that are in use, by key(UUID). All others are idle.
	held map[string]holding
	key  func(device string) string
	// tickets are the valid tickets, the oldest first.
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

// usable reports whether t could take device now, because nobody or only the run of t holds it.
func (v view) usable(device string, t Ticket) bool {
	h, held := v.held[v.key(device)]
	return !held || h.run == t.Run
}

// market has the GPUs for which tickets compete, and the tickets, the oldest first.
type market struct {
	devices map[string]int // a number for each GPU that a ticket names
	wants   [][]int        // for each ticket, the GPUs that it could use
	counts  []int          // for each ticket, how many of them it wants
}

func (v view) market(tickets []Ticket) market {
	m := market{devices: make(map[string]int)}
	for _, t := range tickets {
		var wants []int
		for _, d := range t.Devices {
			if !v.usable(d, t) {
				continue
			}
			n, known := m.devices[d]
			if !known {
				n = len(m.devices)
				m.devices[d] = n
			}
			wants = append(wants, n)
		}
		m.wants, m.counts = append(m.wants, wants), append(m.counts, t.Count)
	}
	return m
}

// claims returns how many GPUs each ticket can claim if nobody can use the GPUs in gone. Older tickets claim
// first. claims finds a matching between tickets and GPUs by augmenting paths. A path may move the claims of
// older tickets to other GPUs, but never takes a claim away.
func (m market) claims(gone []string) []int {
	const idle, never = -1, -2
	claimant := make([]int, len(m.devices)) // for each GPU, the ticket that claims it
	for d := range claimant {
		claimant[d] = idle
	}
	for _, d := range gone {
		if n, named := m.devices[d]; named {
			claimant[n] = never
		}
	}
	next := make([]int, len(m.wants))   // for each ticket, the first of its GPUs that may still be idle
	met := make([]int, len(m.wants))    // for each ticket, the last search that has reached it
	spent := make([]bool, len(m.wants)) // no path from the ticket leads to an idle GPU any longer
	search := 0
	var claim func(int) bool
	claim = func(i int) bool {
		met[i] = search
		for ; next[i] < len(m.wants[i]); next[i]++ {
			if d := m.wants[i][next[i]]; claimant[d] == idle {
				claimant[d] = i
				return true
			}
		}
		for _, d := range m.wants[i] {
			if j := claimant[d]; j >= 0 && met[j] != search && !spent[j] && claim(j) {
				claimant[d] = i
				return true
			}
		}
		return false
	}
	counts := make([]int, len(m.wants))
	for i := range m.wants {
		for counts[i] < m.counts[i] && !spent[i] {
			search++
			if claim(i) {
				counts[i]++
				continue
			}
			for j := range met {
				spent[j] = spent[j] || met[j] == search
			}
		}
	}
	return counts
}

// ready returns the earliest times at which each of the Devices of t can be idle, in
// ascending order.
func (v view) ready(t Ticket) []time.Time {
	free := make([]time.Time, 0, len(t.Devices))
	for _, d := range t.Devices {
		switch h := v.held[v.key(d)]; {
		case v.usable(d, t):
			free = append(free, v.now)
		case h.until.IsZero():
			free = append(free, v.now.Add(Horizon))
		default: // a job that has exceeded its limit is about to end
			free = append(free, later(v.now, h.until))
		}
	}
	slices.SortFunc(free, time.Time.Compare)
	return free
}

// earliest returns the earliest time at which t could start if it got all idle GPUs.
func (v view) earliest(t Ticket) time.Time {
	if t.Least == 0 {
		return later(v.now, t.NotBefore)
	}
	return later(v.ready(t)[t.Least-1], t.NotBefore)
}

// Earliest returns the earliest time at which n GPUs of the given hosts can be idle, if no other gang waits. It
// returns the zero Time if that time is not known. A gang that could start on these hosts uses the result as
// the NotBefore of its tickets on these hosts.
func Earliest(n int, hosts ...*Waiting) time.Time {
	var ready []time.Time
	for _, w := range hosts {
		if w == nil {
			return time.Time{}
		}
		ready = append(ready, w.Ready...)
	}
	if n < 1 || n > len(ready) {
		return time.Time{}
	}
	slices.SortFunc(ready, time.Time.Compare)
	return ready[n-1]
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// against returns the older tickets that forbid t to take the idle GPUs in take, because these tickets would
// get less.
func (v view) against(t Ticket, take []string) []Ticket {
	older := v.ahead(t)
	if len(older) == 0 || len(take) == 0 {
		return nil
	}
	m := v.market(older)
	return v.hurt(t, older, m.claims(nil), m.claims(take))
}

// hurt returns the older tickets that can claim fewer GPUs after than before. It omits tickets that could not
// start before t has ended.
func (v view) hurt(t Ticket, older []Ticket, before, after []int) (hurt []Ticket) {
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

// spare returns idle GPUs that t may take now. It returns as many as the ticket rule allows, and prefers those
// that come first in the Devices of t. t may also take only some of them. It may take other GPUs instead, but
// not more.
func (v view) spare(t Ticket) []string {
	older := v.ahead(t)
	m := v.market(older)
	before := m.claims(nil)
	var take []string
	for _, d := range t.Devices {
		if _, held := v.held[v.key(d)]; held {
			continue
		}
		if with := append(slices.Clip(take), d); len(v.hurt(t, older, before, m.claims(with))) == 0 {
			take = with
		}
	}
	return take
}
