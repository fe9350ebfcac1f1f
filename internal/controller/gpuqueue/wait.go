package gpuqueue

import (
	"errors"
	"os/user"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/lease"
)

// gpuID names a GPU of one of several hosts.
type gpuID struct{ host, uuid string }

// wait is a gang that waits for its turn. Its methods decide; lease.Acquire acts.
type wait struct {
	gang    *Gang
	since   time.Time
	now     func() time.Time
	user    string
	turns   []Turn
	members []lease.Member[Grant]
	levels  []job.Locality // that the gang would fit on, the closest first
	choice  topology.Choice
	looked  time.Time // when the hosts were last looked at

	held   map[gpuID]bool // the GPUs that others held at the last look
	kept   map[gpuID]bool // the GPUs that were kept for gangs that wait longer
	notes  map[noteKind]note
	warned map[string]bool
}

func newWait(g *Gang) *wait {
	w := &wait{
		gang: g, since: time.Now(), looked: time.Now(), now: time.Now,
		held: map[gpuID]bool{}, kept: map[gpuID]bool{}, notes: map[noteKind]note{}, warned: map[string]bool{},
	}
	if u, err := user.Current(); err == nil {
		w.user = u.Username
	}
	for _, h := range g.Hosts {
		name := ""
		if g.Simulated {
			name = h.Name
		}
		turn := g.NewTurn(h.Name, name)
		w.turns = append(w.turns, turn)
		w.members = append(w.members, turn)
	}
	for _, level := range job.Localities() {
		want := g.Want
		want.Locality = level
		if _, err := topology.PlaceGPUs(want, job.Inventory{Hosts: g.Hosts}, g.Excluded); err == nil || fitsIdle(err) {
			w.levels = append(w.levels, level)
		}
		if level == g.Want.Locality {
			break
		}
	}
	return w
}

// fitsIdle reports whether a gang that does not fit now would fit if no GPU were busy.
func fitsIdle(err error) bool {
	var none *topology.NoPlacement
	return errors.As(err, &none) && none.Ever
}

func (w *wait) close() {
	for _, t := range w.turns {
		_ = t.Close() // the end of its agent removes its file at the latest
	}
}

// acceptsAfter returns how long the gang waits before it accepts a level. ever is false if
// it never does.
func (w *wait) acceptsAfter(level job.Locality) (after time.Duration, ever bool) {
	for _, l := range w.levels {
		if l == level {
			return after, true
		}
		patience, bounded := w.gang.Patience.For(l)
		if !bounded {
			return 0, false
		}
		after += patience
	}
	return 0, false
}

// level returns the widest level that the gang accepts after it has waited for waited. It also
// returns after how long a wait the gang accepts a wider one; 0 means never.
func (w *wait) level(waited time.Duration) (level job.Locality, wider time.Duration) {
	level = w.gang.Want.Locality
	for _, l := range w.levels {
		after, ever := w.acceptsAfter(l)
		switch {
		case !ever:
			return level, 0
		case after > waited:
			return level, after
		}
		level = l
	}
	return level, 0
}

// plan returns what to request of each host. If enough GPUs that are close together are free, it
// requests these. Otherwise it requests tickets for all GPUs that the gang could use, in every
// place that could take the gang. It also returns when to plan again.
func (w *wait) plan(states []*lease.Waiting) (requests []lease.Request, again time.Time, err error) {
	p := w.gang
	w.warn(states)
	if p.Look != nil && (w.now().Sub(w.looked) >= LookEvery || w.released(states)) {
		p.Hosts, w.looked = p.Look(), w.now()
	}
	hosts := w.foreign(states)
	want := p.Want
	var wider time.Duration
	if want.Locality, wider = w.level(w.now().Sub(w.since)); wider > 0 {
		again = w.since.Add(wider)
	}
	if _, err := topology.PlaceGPUs(want, job.Inventory{Hosts: hosts}, p.Excluded); err != nil && !fitsIdle(err) {
		return nil, again, err // it does not fit at all
	}
	requests = w.tickets(claimsFor(want, hosts, p.Excluded), states)
	if states == nil {
		return requests, again, nil
	}
	now := job.Inventory{Hosts: w.busy(hosts, states)}
	choice, err := topology.PlaceGPUs(want, now, p.Excluded)
	if err != nil {
		w.report(err, now, want.Locality)
		return requests, again, nil
	}
	w.choice = choice
	w.take(requests, choice)
	return requests, again, nil
}

// tickets returns requests that only wait for what the gang claims.
func (w *wait) tickets(claims []claim, states []*lease.Waiting) (requests []lease.Request) {
	g := w.gang
	for i, c := range claims {
		requests = append(requests, lease.Request{User: w.user, Command: g.Command, Ticket: lease.Ticket{
			Run: g.Run, Since: w.since, Devices: c.devices, Count: c.count, Least: c.least, Limit: g.Limit,
			NotBefore: notBefore(i, claims, g.Want.Ranks*g.Want.GPUs, states),
		}})
	}
	return requests
}

// take adds to requests the GPUs that a choice uses on each host. The tickets stay: if another gang
// is faster, this one still waits for every place.
func (w *wait) take(requests []lease.Request, choice topology.Choice) {
	for _, rank := range choice.Placement.Ranks {
		i := slices.IndexFunc(w.gang.Hosts, func(h job.Host) bool { return h.Name == rank.Host })
		r := &requests[i]
		r.Take, r.Ranks = append(r.Take, rank.Devices...), append(r.Ranks, rank.Rank)
		r.Count = max(r.Count, len(r.Take))
	}
}

// leased returns the lease of a GPU, if a gang holds it.
func leased(state *lease.Waiting, uuid string) (lease.Lease, bool) {
	if state == nil {
		return lease.Lease{}, false
	}
	i := slices.IndexFunc(state.Leases, func(l lease.Lease) bool { return l.Device == uuid })
	if i < 0 || state.Leases[i].Idle() {
		return lease.Lease{}, false
	}
	return state.Leases[i], true
}

// released reports whether a gang has given back a GPU that counted as busy at the last look. The
// processes that were seen on it were probably those of that gang, so the hosts must be looked at
// again.
func (w *wait) released(states []*lease.Waiting) bool {
	for i, state := range states {
		for _, d := range w.gang.Hosts[i].Devices {
			if _, held := leased(state, d.UUID); d.Busy != "" && !held && w.held[gpuID{w.gang.Hosts[i].Name, d.UUID}] {
				return true
			}
		}
	}
	return false
}

// foreign returns the hosts with only those GPUs busy that programs other than gangrun use. What
// runs on a leased GPU belongs to the holder of the lease. foreign records which GPUs are held.
func (w *wait) foreign(states []*lease.Waiting) []job.Host {
	hosts := slices.Clone(w.gang.Hosts)
	clear(w.held)
	for i, state := range states {
		hosts[i].Devices = slices.Clone(hosts[i].Devices)
		for j := range hosts[i].Devices {
			d := &hosts[i].Devices[j]
			if _, held := leased(state, d.UUID); held {
				d.Busy = ""
				w.held[gpuID{hosts[i].Name, d.UUID}] = true
			}
		}
	}
	return hosts
}

// notBefore returns the earliest time at which the gang can start in the place of claim i, if that
// place has several hosts. For a single host, its ticket says that.
func notBefore(i int, all []claim, need int, states []*lease.Waiting) time.Time {
	var there []*lease.Waiting
	for j, state := range states {
		if all[j].place == all[i].place {
			there = append(there, state)
		}
	}
	if all[i].place < 0 || len(there) < 2 {
		return time.Time{}
	}
	return lease.Earliest(need, there...)
}

// keptForOlder says why a GPU that no gang holds may not be taken.
const keptForOlder = "kept for a gang that waits longer"

// busy returns the hosts, with those GPUs busy that may not be taken now. It records which GPUs are
// kept for gangs that have waited longer.
func (w *wait) busy(hosts []job.Host, states []*lease.Waiting) []job.Host {
	hosts = slices.Clone(hosts)
	clear(w.kept)
	for i, state := range states {
		if state == nil {
			continue
		}
		hosts[i].Devices = slices.Clone(hosts[i].Devices)
		for j := range hosts[i].Devices {
			d := &hosts[i].Devices[j]
			if l, held := leased(state, d.UUID); held {
				d.Busy = l.Holder(w.now())
			} else if d.Busy == "" && !slices.Contains(state.Spare, d.UUID) {
				d.Busy = keptForOlder
				w.kept[gpuID{hosts[i].Name, d.UUID}] = true
			}
		}
	}
	return hosts
}
