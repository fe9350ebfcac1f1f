package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Peers finds ranks that stay slower than the other ranks of their gang. It divides the time into windows, and
// compares all ranks in each window.
type Peers struct {
	window time.Duration
	ranks  map[int]*peer
	ready  int  // number of ranks whose window is complete
	passed int  // number of complete windows
	over   bool // a rank has ended, or no straggler is to be found
}

// peer is what Peers remembers of a rank.
type peer struct {
	host        string
	first, last reading
	seen        int // number of pulses in this window after the first
	idle        int // number of these pulses at which the rank did not run
	files       int // number of these pulses at which it waited for a file
	sent        int // number of these pulses at which it was sending to other hosts
	rate, rtt   float64
	length      time.Duration // length of a window, by the clock of the rank's host
	ready       bool

	slow   int // number of windows in a row in which the rank was slow for the same reason
	calm   int // number of windows in a row in which it was not slow
	reason job.StragglerReason
	told   *job.StragglerReport
}

// reading is a pulse and its time by the clock of the host.
type reading struct {
	job.Pulse
	at    time.Time
	stall time.Duration // for how long the host has waited for memory
}

const (
	// leastPulses is the smallest number of pulses in a window. Shares of fewer pulses are too coarse.
	leastPulses = 5
	// leastPeers is the smallest gang whose ranks are compared.
	leastPeers = 3
	// A rank is slow if its speed is below slowSpeed, as a share of the median of the others. It is no longer
	// slow above calmSpeed.
	slowSpeed, calmSpeed = 0.75, 0.85
	// A rank is a straggler if it is slow in slowWindows windows in a row. A gang may be ended for it after
	// lastingWindows.
	slowWindows, lastingWindows = 2, 4
)

// NewPeers returns a Peers for a gang with that number of ranks. window is the shortest time over which ranks
// are compared. If it is 0 or less, Peers finds no stragglers.
func NewPeers(window time.Duration, ranks int) *Peers {
	return &Peers{window: window, ranks: map[int]*peer{}, over: window <= 0 || ranks < leastPeers}
}

// Exit records that a rank has ended. After that, Peers finds no stragglers, because the gang is about to end,
// and its ranks do different things.
func (w *Peers) Exit() { w.over, w.ranks = true, nil }

// Add adds the pulses of a host. It returns new reports about stragglers.
func (w *Peers) Add(p job.Pulses) []job.StragglerReport {
	if w.over {
		return nil
	}
	least := max(w.window, leastPulses*time.Duration(p.Every))
	for _, pulse := range p.Ranks {
		now := reading{pulse, p.Time, time.Duration(p.MemoryStall)}
		r := w.ranks[pulse.Rank]
		if r == nil {
			w.ranks[pulse.Rank] = &peer{host: p.Host, first: now, last: now}
			continue
		}
		r.add(now)
		r.length = least
		if !r.ready && r.seen >= leastPulses && now.at.Sub(r.first.at) >= least {
			r.ready = true
			w.ready++
		}
	}
	if w.ready < len(w.ranks) || w.ready == 0 {
		return nil
	}
	found := w.judge()
	w.passed++
	w.ready = 0
	for _, r := range w.ranks {
		r.first, r.seen, r.idle, r.files, r.sent, r.rate, r.rtt, r.ready = r.last, 0, 0, 0, 0, 0, 0, false
	}
	return found
}

func (r *peer) add(now reading) {
	r.last = now
	r.seen++
	if now.State != job.ProcessRunning {
		r.idle++
	}
	if now.Delays.File {
		r.files++
	}
	if now.Delays.Rate > 0 {
		r.sent++
		r.rate += float64(now.Delays.Rate)
		r.rtt += time.Duration(now.Delays.RTT).Seconds()
	}
}

// judge compares the ranks at the end of a window.
func (w *Peers) judge() []job.StragglerReport {
	numbers := slices.Sorted(maps.Keys(w.ranks))
	if len(numbers) < leastPeers || w.passed == 0 { // in the first window, the ranks begin to work at different times
		return nil
	}
	var all []paces
	moved, steps, longest := false, false, time.Duration(0)
	for _, r := range w.ranks {
		longest = max(longest, r.length) // the windows of the others last at least as long
	}
	for _, number := range numbers {
		r := w.ranks[number]
		if r.last.at.Sub(r.first.at) > longest+longest/2 { // its host was suspended, or its pulses were lost
			return nil
		}
		switch r.last.Phase {
		case job.PhaseInit, job.PhaseBarrier, job.PhaseLeft:
			return nil
		}
		m := r.measure()
		steps = steps || r.last.Progress != nil
		moved = moved || m.steps > 0
		all = append(all, m)
	}
	if steps && !moved {
		return nil // the job evaluates, saves or hangs, and not all ranks take part in that
	}
	compare(all)
	var found []job.StragglerReport
	for i, number := range numbers {
		if report := w.ranks[number].note(number, all[i]); report != nil {
			found = append(found, *report)
		}
	}
	return w.byHost(found)
}

// note adds the result of a window. It returns a report if the rank became a straggler or is no longer one.
func (r *peer) note(number int, m paces) *job.StragglerReport {
	switch {
	case m.slow && r.slow > 0 && m.reason == r.reason:
		r.slow, r.calm = r.slow+1, 0
	case m.slow:
		r.slow, r.calm, r.reason = 1, 0, m.reason
	case m.speed >= calmSpeed || r.told == nil:
		r.slow, r.calm = 0, r.calm+1
	}
	report := job.StragglerReport{Rank: number, Host: r.host, Speed: m.speed, Reason: m.reason}
	switch {
	case r.slow >= slowWindows && (r.told == nil || r.told.Reason != m.reason):
		report.Text = slowWords(report, m.lost)
		r.told = &report
	case r.calm >= slowWindows && r.told != nil:
		report.Reason, report.Over = r.told.Reason, true
		report.Text = overWords(report)
		r.told = nil
	default:
		return nil
	}
	return &report
}

// byHost replaces the reports of all ranks of a host, if they are at least two and have the same reason, by
// one report of the host.
func (w *Peers) byHost(found []job.StragglerReport) (merged []job.StragglerReport) {
	type key struct {
		host   string
		reason job.StragglerReason
		over   bool
	}
	ranks, same := map[string]int{}, map[key][]job.StragglerReport{}
	for _, r := range w.ranks {
		ranks[r.host]++
	}
	of := func(r job.StragglerReport) key { return key{r.Host, r.Reason, r.Over} }
	for _, r := range found {
		same[of(r)] = append(same[of(r)], r)
	}
	for _, r := range found {
		all := same[of(r)]
		switch {
		case len(all) < 2 || len(all) < ranks[r.Host]:
			merged = append(merged, r)
		case r.Rank == all[0].Rank:
			worst := slices.MinFunc(all, func(a, b job.StragglerReport) int { return cmp.Compare(a.Speed, b.Speed) })
			worst.Text, worst.Rank = hostWords(r.Host, worst), -1
			merged = append(merged, worst)
		}
	}
	return merged
}

// Lasting returns the report of a rank that has been slow for many windows in a row, or nil if there is no such
// rank. It ignores a rank that only has more work, because that rank would be as slow on another host. It also
// ignores a rank if it is not known why the rank is slow.
func (w *Peers) Lasting() *job.StragglerReport {
	for _, number := range slices.Sorted(maps.Keys(w.ranks)) {
		r := w.ranks[number]
		if r.told != nil && r.slow >= lastingWindows && r.reason != job.SlowUnknown && r.reason != job.SlowWork {
			return r.told
		}
	}
	return nil
}
