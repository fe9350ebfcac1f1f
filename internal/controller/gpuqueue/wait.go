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

// gpuID identifies a GPU on one of several hosts.
type gpuID struct{ host, uuid string }

// wait is a gang that waits for its turn. Its methods only decide what to request. lease.Acquire carries that out.
type wait struct {
	gang    *Gang
	since   time.Time
	now     func() time.Time
	user    string
	turns   []Turn
	members []lease.Member[Grant]
	levels  []job.Locality // the levels on which the gang would fit, the closest first
	choice  topology.Choice
	looked  time.Time // time of the last look at the hosts

	held   map[gpuID]bool // GPUs that other gangs held at the last look
	kept   map[gpuID]bool // GPUs that were kept for gangs that wait longer
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
		_ = t.Close() // at the latest, the end of the agent removes the agent's file
	}
}

// acceptsAfter returns how long the gang waits before it accepts a level. ever is false if the gang never accepts it.
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

// level returns the widest level that the gang accepts after it has waited for waited. wider is the waiting time after
// which the gang accepts a wider level. It is 0 if the gang never does.
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
		return nil, again, err // the gang does not fit at all
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

// tickets returns requests that only wait for the GPUs that the gang claims.
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

// take adds to requests the GPUs that a choice uses on each host. The tickets stay in the requests. So if another gang
// is faster, this gang still waits for every place.
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

// released reports whether a gang has released a GPU that counted as busy at the last look. The processes on that GPU
// probably belonged to that gang, so the hosts must be looked at again.
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

// foreign returns the hosts. Only those GPUs are busy that programs other than gangrun use. Processes on a leased GPU
// belong to the holder of the lease. foreign also records which GPUs are held.
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

// notBefore returns the earliest time at which the gang can start in the place of claim i, if that place has several
// hosts. If it has a single host, the ticket for that host has this time.
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

// keptForOlder is the reason why the gang may not take a GPU that no gang holds.
const keptForOlder = "kept for a gang that waits longer"

// busy returns the hosts. Those GPUs are busy that the gang may not take now. busy records which GPUs are kept for
// gangs that have waited longer.
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
