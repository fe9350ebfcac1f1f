package topology

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// happening is an event in a simulation: a gang comes, takes a wider level, or ends.
type happening struct {
	at   int64
	gang int
	what string // "comes", "relaxes" or "ends"
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].gang < h[j].gang
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// simulated is a gang in a simulation.
type simulated struct {
	arrival
	start int64 // -1 while it waits
	taken []gpuMask
	level job.Locality
	hosts int
	links int // the result of fleet.level
}

// simulation is a cluster with one policy. As in gangrun by default, the end of a gang is not known. So the
// ticket rule lets no gang start early because of its time limit.
type simulation struct {
	fleet    *fleet
	policy   policy
	patience time.Duration
	now      int64
	free     []gpuMask
	gangs    []simulated
	waiting  []int // the oldest first
	queue    happenings
	levels   map[int][]job.Locality // by number of GPUs
	tickets  map[ticketKey][]int    // GPUs of each host
	// watch is called with the state between two moments.
	watch func(from, to int64, free []gpuMask)
}

type ticketKey struct {
	gpus  int
	level job.Locality
}

func newSimulation(f *fleet, p policy, patience time.Duration, list []arrival) *simulation {
	s := &simulation{
		fleet: f, policy: p, patience: patience, free: f.idle(),
		levels: map[int][]job.Locality{}, tickets: map[ticketKey][]int{},
		watch: func(int64, int64, []gpuMask) {},
	}
	for i, a := range list {
		s.gangs = append(s.gangs, simulated{arrival: a, start: -1})
		heap.Push(&s.queue, happening{a.at, i, "comes"})
	}
	return s
}

// step goes to the next moment at which something happens.
func (s *simulation) step() (more bool, err error) {
	if len(s.queue) == 0 {
		return false, nil
	}
	now := s.queue[0].at
	s.watch(s.now, now, s.free)
	s.now = now
	for len(s.queue) > 0 && s.queue[0].at == now {
		h := heap.Pop(&s.queue).(happening)
		switch g := &s.gangs[h.gang]; h.what {
		case "ends":
			for host, m := range g.taken {
				s.free[host] |= m
			}
		case "comes":
			levels, err := s.levelsOf(g.gpus)
			if err != nil {
				return false, err
			}
			s.waiting = append(s.waiting, h.gang)
			for i := range len(levels) - 1 {
				heap.Push(&s.queue, happening{now + int64(i+1)*int64(s.patience/time.Second), h.gang, "relaxes"})
			}
		}
	}
	return true, s.serve()
}

// levelsOf returns the levels for which a gang waits, the closest first. The gang would fit on each of them if
// no GPU were busy.
func (s *simulation) levelsOf(gpus int) ([]job.Locality, error) {
	if list, ok := s.levels[gpus]; ok {
		return list, nil
	}
	var list []job.Locality
	for _, level := range s.policy.levels {
		taken, err := s.policy.place(s.fleet, s.fleet.idle(), gpus, level)
		if err != nil {
			return nil, err
		}
		if taken != nil {
			list = append(list, level)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("%d GPUs never fit on %d hosts", gpus, len(s.fleet.hosts))
	}
	s.levels[gpus] = list
	return list, nil
}

// ticket returns what a waiting gang asks of each host: what it would get if no GPU were busy.
func (s *simulation) ticket(gpus int, level job.Locality) ([]int, error) {
	key := ticketKey{gpus, level}
	if t, ok := s.tickets[key]; ok {
		return t, nil
	}
	taken, err := s.policy.place(s.fleet, s.fleet.idle(), gpus, level)
	if err != nil {
		return nil, err
	}
	t := make([]int, len(taken))
	for h, m := range taken {
		t[h] = m.count()
	}
	s.tickets[key] = t
	return t, nil
}

// serve starts the waiting gangs that can start, the oldest first. As in package lease, it keeps idle GPUs of a
// host for older tickets. A ticket is for any GPUs of a host, so it is enough to count them.
func (s *simulation) serve() error {
	kept := make([]int, len(s.free))
	var still []int
	for _, i := range s.waiting {
		g := &s.gangs[i]
		levels := s.levels[g.gpus]
		level := levels[len(levels)-1]
		if waited := time.Duration(s.now-g.at) * time.Second; s.patience > 0 {
			level = levels[min(len(levels)-1, int(waited/s.patience))]
		}
		spare := make([]gpuMask, len(s.free))
		for h, m := range s.free {
			spare[h] = m.first(max(0, m.count()-kept[h]))
		}
		var taken []gpuMask
		var err error
		if s.canFit(spare, g.gpus, level) {
			if taken, err = s.policy.place(s.fleet, spare, g.gpus, level); err != nil {
				return err
			}
		}
		if taken == nil {
			ticket, err := s.ticket(g.gpus, level)
			if err != nil {
				return err
			}
			for h, n := range ticket {
				kept[h] += n
			}
			still = append(still, i)
			continue
		}
		if err := s.begin(i, spare, taken, level); err != nil {
			return err
		}
	}
	s.waiting = still
	return nil
}

// canFit returns false if there are too few GPUs for a gang. This saves the work of placing it.
func (s *simulation) canFit(free []gpuMask, gpus int, level job.Locality) bool {
	all, most := 0, 0
	racks := make([]int, len(s.fleet.racks))
	for h, m := range free {
		all += m.count()
		most = max(most, m.count())
		racks[s.fleet.rack[h]] += m.count()
	}
	switch level {
	case job.LocalityIsland, job.LocalityHost:
		return most >= gpus
	case job.LocalityRack:
		return slices.Max(racks) >= gpus
	}
	return all >= gpus
}

// begin starts a gang, and checks that the policy has kept to the rules.
func (s *simulation) begin(i int, spare, taken []gpuMask, within job.Locality) error {
	g, sum := &s.gangs[i], 0
	for h, m := range taken {
		if m&^spare[h] != 0 {
			return fmt.Errorf("%s gives gang %d GPUs of host %d that are not free", s.policy.name, i, h)
		}
		sum += m.count()
		s.free[h] &^= m
	}
	g.start, g.taken = s.now, taken
	g.level, g.hosts, g.links = s.fleet.level(taken)
	if order := job.Localities(); sum != g.gpus || slices.Index(order, g.level) > slices.Index(order, within) {
		return fmt.Errorf("%s gives gang %d %d GPUs at level %s, want %d at %s", s.policy.name, i, sum, g.level, g.gpus, within)
	}
	heap.Push(&s.queue, happening{s.now + g.run, i, "ends"})
	return nil
}
