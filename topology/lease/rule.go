package lease

import (
	"slices"
	"time"
)

// Horizon is how much longer a holder whose end is not known is taken to hold its
// GPUs, in the decision whether a job with a time limit may go ahead of an older
// ticket. It is the most that such jobs delay a ticket.
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

// market is what tickets, the oldest first, compete for.
type market struct {
	devices map[string]int // numbers of the GPUs that are named
	wants   [][]int        // of each ticket the GPUs that it could use, if they were not gone
	counts  []int          // how many of them each wants
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

// claims returns how many of the usable GPUs each of the tickets, the oldest
// first, can claim when nobody can use those in gone. It is a matching between
// tickets and GPUs: each claim is found by an augmenting path, which moves older
// claims between GPUs but ends none.
func (m market) claims(gone []string) []int {
	const idle, never = -1, -2
	claimant := make([]int, len(m.devices)) // the number of its ticket
	for d := range claimant {
		claimant[d] = idle
	}
	for _, d := range gone {
		if n, named := m.devices[d]; named {
			claimant[n] = never
		}
	}
	next := make([]int, len(m.wants))   // of each ticket those before it are not idle, and stay so
	met := make([]int, len(m.wants))    // in which search it was met last
	spent := make([]bool, len(m.wants)) // no path from it leads to an idle one, nor ever will
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

// ready returns when each of the Devices of t can be idle at the earliest, the
// soonest first.
func (v view) ready(t Ticket) []time.Time {
	free := make([]time.Time, 0, len(t.Devices))
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
	return free
}

// earliest returns when t could start at the earliest if all idle GPUs were its.
func (v view) earliest(t Ticket) time.Time {
	if t.Least == 0 {
		return later(v.now, t.NotBefore)
	}
	return later(v.ready(t)[t.Least-1], t.NotBefore)
}

// Earliest returns when n GPUs of hosts that a gang could start on can be idle at
// the earliest, were it alone there: the NotBefore of its tickets on them. It is
// zero where that is not known.
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

// against returns the older tickets that would be worse off if t took the idle
// GPUs take: those that forbid it.
func (v view) against(t Ticket, take []string) []Ticket {
	older := v.ahead(t)
	if len(older) == 0 || len(take) == 0 {
		return nil
	}
	m := v.market(older)
	return v.hurt(t, older, m.claims(nil), m.claims(take))
}

// hurt returns those of the older tickets whose claims after are less than before,
// and which cannot start only after t has ended.
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

// spare returns as many of the idle GPUs of t as it may take now, the first in
// the order of its Devices; any part of them it may take as well. It may take others
// instead, but not more.
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
