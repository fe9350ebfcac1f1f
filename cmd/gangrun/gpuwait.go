package main

import (
	"errors"
	"os/user"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/lease"
)

// gpuOf names a GPU of one of several hosts.
type gpuOf struct{ host, uuid string }

// gpuWait is a gang that waits for its turn.
type gpuWait struct {
	p       *gpuPlacer
	since   time.Time
	user    string
	turns   []gpuTurn
	members []lease.Member[gpuGrant]
	levels  []job.Locality // that the gang would fit on, the closest first
	choice  topology.Choice
	looked  time.Time // when the hosts were last looked at
	now     func() time.Time

	held   map[gpuOf]bool  // GPUs that others hold, as was seen last
	told   map[string]told // by level and what is in the way
	warned map[string]bool
}

func (p *gpuPlacer) newWait() *gpuWait {
	w := &gpuWait{p: p, since: time.Now(), looked: time.Now(), now: time.Now, held: map[gpuOf]bool{}, told: map[string]told{}, warned: map[string]bool{}}
	if u, err := user.Current(); err == nil {
		w.user = u.Username
	}
	for _, h := range p.hosts {
		name := ""
		if p.pretend {
			name = h.Name
		}
		turn := p.turn(h.Name, name)
		w.turns = append(w.turns, turn)
		w.members = append(w.members, turn)
	}
	for _, level := range job.Localities() {
		want := p.want
		want.Locality = level
		if _, err := topology.PlaceGPUs(want, job.Inventory{Hosts: p.hosts}, p.not); err == nil || ever(err) {
			w.levels = append(w.levels, level)
		}
		if level == p.want.Locality {
			break
		}
	}
	return w
}

// ever reports whether a gang that does not fit now would if no GPU were busy.
func ever(err error) bool {
	var none *topology.NoPlacement
	return errors.As(err, &none) && none.Ever
}

func (w *gpuWait) close() {
	for _, t := range w.turns {
		_ = t.Close() // its file is void with its agent at the latest
	}
}

// opens says after how long a wait the gang takes a level, and whether it ever does.
func (w *gpuWait) opens(level job.Locality) (after time.Duration, ever bool) {
	for _, l := range w.levels {
		if l == level {
			return after, true
		}
		patience, bounded := w.p.patience.For(l)
		if !bounded {
			return 0, false
		}
		after += patience
	}
	return 0, false
}

// level is the widest level that the gang takes after having waited for so long,
// and after how long a wait it takes a wider one; 0 is never.
func (w *gpuWait) level(waited time.Duration) (level job.Locality, wider time.Duration) {
	level = w.p.want.Locality
	for _, l := range w.levels {
		after, ever := w.opens(l)
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

// plan says what to ask of each host: GPUs that may be had now and are close
// enough, or tickets for all that the gang could use on any place that could take it.
func (w *gpuWait) plan(states []*lease.Waiting) (requests []lease.Request, again time.Time, err error) {
	p := w.p
	w.warn(states)
	if p.again != nil && (w.now().Sub(w.looked) >= lookAgain || w.released(states)) {
		p.hosts, w.looked = p.again(), w.now()
	}
	hosts := w.foreign(states)
	want := p.want
	var wider time.Duration
	if want.Locality, wider = w.level(w.now().Sub(w.since)); wider > 0 {
		again = w.since.Add(wider)
	}
	if _, err := topology.PlaceGPUs(want, job.Inventory{Hosts: hosts}, p.not); err != nil && !ever(err) {
		return nil, again, err // it will never fit
	}
	claims := gpuClaims(want, hosts, p.not)
	for i, c := range claims {
		requests = append(requests, lease.Request{User: w.user, Command: p.command, Ticket: lease.Ticket{
			Run: p.run, Since: w.since, Devices: c.devices, Count: c.count, Least: c.least, Limit: p.limit, NotBefore: notBefore(i, claims, want.Ranks*want.GPUs, states),
		}})
	}
	if states == nil {
		return requests, again, nil
	}
	now := job.Inventory{Hosts: w.busy(hosts, states)}
	choice, err := topology.PlaceGPUs(want, now, p.not)
	if err != nil {
		w.tell(err, now, want.Locality)
		return requests, again, nil
	}
	w.choice = choice
	w.take(requests, choice)
	return requests, again, nil
}

// take writes into requests what a choice needs of each host. The tickets stay: if
// somebody else is faster, the gang still waits for every place.
func (w *gpuWait) take(requests []lease.Request, choice topology.Choice) {
	for _, rank := range choice.Placement.Ranks {
		i := slices.IndexFunc(w.p.hosts, func(h job.Host) bool { return h.Name == rank.Host })
		r := &requests[i]
		r.Take, r.Ranks = append(r.Take, rank.Devices...), append(r.Ranks, rank.Rank)
		r.Count = max(r.Count, len(r.Take))
	}
}

// leased returns the lease of a GPU that somebody has.
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

// released reports whether somebody gave back a GPU that was seen to be used: what
// used it was his, and the hosts must be looked at anew.
func (w *gpuWait) released(states []*lease.Waiting) bool {
	for i, state := range states {
		for _, d := range w.p.hosts[i].Devices {
			if _, held := leased(state, d.UUID); d.Busy != "" && !held && w.held[gpuOf{w.p.hosts[i].Name, d.UUID}] {
				return true
			}
		}
	}
	return false
}

// foreign returns the hosts with only those GPUs busy that others than gangrun use:
// what runs on one that is leased belongs to who holds it. It notes what is held.
func (w *gpuWait) foreign(states []*lease.Waiting) []job.Host {
	hosts := slices.Clone(w.p.hosts)
	clear(w.held)
	for i, state := range states {
		hosts[i].Devices = slices.Clone(hosts[i].Devices)
		for j := range hosts[i].Devices {
			d := &hosts[i].Devices[j]
			if _, held := leased(state, d.UUID); held {
				d.Busy = ""
				w.held[gpuOf{hosts[i].Name, d.UUID}] = true
			}
		}
	}
	return hosts
}

// notBefore is when the gang can start at the earliest on the place of claim i of
// all, where that is several hosts; of a single one its ticket tells.
func notBefore(i int, all []gpuClaim, need int, states []*lease.Waiting) time.Time {
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

// keptForOlder is why a GPU that nobody has may not be taken.
const keptForOlder = "kept for a gang that waits longer"

// busy returns the hosts with those GPUs marked that may not be taken now.
func (w *gpuWait) busy(hosts []job.Host, states []*lease.Waiting) []job.Host {
	hosts = slices.Clone(hosts)
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
			}
		}
	}
	return hosts
}
