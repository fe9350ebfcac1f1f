package lease

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// at returns a view at epoch. held has the GPUs that runs hold.
func at(held map[string]holding, tickets ...Ticket) view {
	return view{now: epoch, held: held, tickets: tickets, key: func(d string) string { return d }}
}

func ticket(run string, age, count int, devices ...string) Ticket {
	return Ticket{Run: run, Since: epoch.Add(time.Duration(-age) * time.Second), Devices: devices, Count: count, Least: count}
}

func TestTicketRule(t *testing.T) {
	all := gpus(4)
	hog := func(devices ...string) map[string]holding {
		held := map[string]holding{}
		for _, d := range devices {
			held[d] = holding{run: "hog"}
		}
		return held
	}
	short := func(t Ticket, limit time.Duration) Ticket { t.Limit = limit; return t }
	late := func(t Ticket, after time.Duration) Ticket { t.NotBefore = epoch.Add(after); return t }
	least := func(t Ticket, n int) Ticket { t.Least = n; return t }
	for _, c := range []struct {
		name string
		v    view
		t    Ticket
		take []string
		hurt []string
	}{
		{"nobody waits", at(nil), ticket("me", 1, 4, all...), all, nil},
		{"the younger do not count", at(nil, ticket("young", 1, 4, all...)), ticket("me", 2, 4, all...), all, nil},
		{"of one age the lesser name", at(nil, ticket("a", 2, 4, all...)), ticket("b", 2, 1, all...), all[:1], []string{"a"}},
		{"of one age the greater name", at(nil, ticket("c", 2, 4, all...)), ticket("b", 2, 1, all...), all[:1], nil},
		{"one's own run does not count", at(nil, ticket("me", 9, 4, all...)), ticket("me", 2, 1, all...), all[:1], nil},
		{"a big one waits for all", at(hog("GPU0"), ticket("big", 9, 4, all...)), ticket("me", 2, 1, all...), []string{"GPU1"}, []string{"big"}},
		{"what it leaves over", at(hog("GPU0"), ticket("big", 9, 2, all...)), ticket("me", 2, 1, all...), []string{"GPU1"}, nil},
		{"more than it leaves over", at(hog("GPU0"), ticket("big", 9, 2, all...)), ticket("me", 2, 2, all...), []string{"GPU1", "GPU2"}, []string{"big"}},
		{"what it does not wait for", at(nil, ticket("big", 9, 2, "GPU0", "GPU1")), ticket("me", 2, 2, all...), []string{"GPU2", "GPU3"}, nil},
		{"two that share what is left", at(hog("GPU2", "GPU3"), ticket("a", 9, 1, all...), ticket("b", 8, 1, all...)), ticket("me", 2, 1, all...), []string{"GPU0"}, []string{"b"}},
		{"a claim moves", at(hog("GPU3"), ticket("a", 9, 1, "GPU0", "GPU1"), ticket("b", 8, 1, "GPU0")), ticket("me", 2, 1, all...), []string{"GPU2"}, nil},
		{"a claim cannot move", at(hog("GPU3"), ticket("a", 9, 1, "GPU0", "GPU1"), ticket("b", 8, 1, "GPU0")), ticket("me", 2, 1, all...), []string{"GPU1"}, []string{"b"}},
		{"what its own run has serves a ticket", at(map[string]holding{"GPU0": {run: "big"}}, ticket("big", 9, 2, all...)), ticket("me", 2, 2, all...), []string{"GPU1", "GPU2"}, nil},
		{"a limit within Horizon", at(hog("GPU0"), ticket("big", 9, 4, all...)), short(ticket("me", 2, 1, all...), Horizon), []string{"GPU1"}, nil},
		{"a limit over Horizon", at(hog("GPU0"), ticket("big", 9, 4, all...)), short(ticket("me", 2, 1, all...), Horizon+1), []string{"GPU1"}, []string{"big"}},
		{"a limit before a known end", at(map[string]holding{"GPU0": {until: epoch.Add(time.Hour)}}, ticket("big", 9, 4, all...)), short(ticket("me", 2, 1, all...), time.Hour), []string{"GPU1"}, nil},
		{"a limit after a known end", at(map[string]holding{"GPU0": {until: epoch.Add(time.Minute)}}, ticket("big", 9, 4, all...)), short(ticket("me", 2, 1, all...), time.Minute+1), []string{"GPU1"}, []string{"big"}},
		{"a holder over its limit", at(map[string]holding{"GPU0": {until: epoch.Add(-time.Minute)}}, ticket("big", 9, 4, all...)), short(ticket("me", 2, 1, all...), time.Second), []string{"GPU1"}, []string{"big"}},
		{"a limit does not help against one that can start", at(nil, ticket("big", 9, 4, all...)), short(ticket("me", 2, 1, all...), time.Second), []string{"GPU1"}, []string{"big"}},
		{"one that waits for another host", at(nil, late(ticket("big", 9, 4, all...), time.Minute)), short(ticket("me", 2, 1, all...), time.Minute), []string{"GPU1"}, nil},
		{"one that waits for another host, without a limit", at(nil, late(ticket("big", 9, 4, all...), time.Minute)), ticket("me", 2, 1, all...), []string{"GPU1"}, []string{"big"}},
		{"a limit before what one of several hosts needs", at(hog("GPU0"), least(late(ticket("big", 9, 4, all...), time.Minute), 0)), short(ticket("me", 2, 1, all...), time.Minute), []string{"GPU1"}, nil},
		{"a limit after what one of several hosts needs", at(hog("GPU0"), least(late(ticket("big", 9, 4, all...), time.Minute), 0)), short(ticket("me", 2, 1, all...), time.Minute+1), []string{"GPU1"}, []string{"big"}},
		{"one of which nothing is known elsewhere", at(hog("GPU0"), least(ticket("big", 9, 4, all...), 0)), short(ticket("me", 2, 1, all...), time.Second), []string{"GPU1"}, []string{"big"}},
		{"one that may start with fewer than it claims", at(hog("GPU0"), least(ticket("big", 9, 4, all...), 3)), short(ticket("me", 2, 1, all...), time.Second), []string{"GPU1"}, []string{"big"}},
		{"a ticket for nothing", at(nil, ticket("none", 9, 0, all...)), ticket("me", 2, 4, all...), all, nil},
	} {
		var hurt []string
		for _, u := range c.v.against(c.t, c.take) {
			hurt = append(hurt, u.Run)
		}
		if !slices.Equal(hurt, c.hurt) {
			t.Errorf("%s: %v are against it, want %v", c.name, hurt, c.hurt)
		}
		if spare := c.v.spare(c.t); len(c.hurt) == 0 && len(spare) < len(c.take) {
			t.Errorf("%s: %v may be taken, but only %v are spare", c.name, c.take, spare)
		}
	}
}

// most returns the claims that serve the tickets best, older tickets first. It tries every way to give the idle
// GPUs to the tickets.
func most(v view, tickets []Ticket, devices, gone []string) []int {
	best := make([]int, len(tickets))
	counts := make([]int, len(tickets))
	var give func(int)
	give = func(n int) {
		if n == len(devices) {
			if slices.Compare(counts, best) > 0 {
				copy(best, counts)
			}
			return
		}
		give(n + 1)
		d := devices[n]
		if slices.Contains(gone, d) {
			return
		}
		for i, t := range tickets {
			h, held := v.held[d]
			if counts[i] < t.Count && slices.Contains(t.Devices, d) && (!held || h.run == t.Run) {
				counts[i]++
				give(n + 1)
				counts[i]--
			}
		}
	}
	give(0)
	return best
}

// TestClaimsEqualBruteForce compares claims with the brute force, and spare with every set of idle GPUs.
func TestClaimsEqualBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		devices := gpus(1 + random.IntN(5))
		some := func() []string {
			var part []string
			for _, i := range random.Perm(len(devices)) {
				if random.IntN(3) > 0 {
					part = append(part, devices[i])
				}
			}
			return part
		}
		v := at(map[string]holding{})
		for i := range random.IntN(4) {
			d := some()
			v.tickets = append(v.tickets, ticket(fmt.Sprint("t", i), 2+random.IntN(3), random.IntN(len(d)+1), d...))
		}
		for _, d := range devices {
			if random.IntN(4) == 0 {
				v.held[d] = holding{run: fmt.Sprint("t", random.IntN(4))}
			}
		}
		me := ticket("me", 1, len(devices), devices...)
		older := v.ahead(me)
		spare := v.spare(me)
		best := 0
		for set := range 1 << len(devices) {
			var gone []string
			idle := true
			for i, d := range devices {
				if set>>i&1 == 1 {
					_, held := v.held[d]
					gone, idle = append(gone, d), idle && !held
				}
			}
			if !idle {
				continue
			}
			want := most(v, older, devices, gone)
			if got := v.market(older).claims(gone); !slices.Equal(got, want) {
				t.Fatalf("case %d: %+v without %v claims %v, want %v", n, v, gone, got, want)
			}
			if slices.Equal(want, most(v, older, devices, nil)) {
				best = max(best, len(gone))
			}
		}
		if len(spare) != best {
			t.Fatalf("case %d: %+v spares %v, want %d", n, v, spare, best)
		}
	}
}

// TestDelayIsBounded: jobs with limits come all the time, each as early and as long as the rule allows. They
// must not delay a ticket by more than Horizon after the holders are gone.
func TestDelayIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		devices := gpus(2 + random.IntN(6))
		big := ticket("big", 9, len(devices), devices...)
		ends := epoch.Add(time.Duration(random.IntN(600)) * time.Second)
		v := at(map[string]holding{devices[0]: {run: "hog"}}, big)
		for now := epoch; ; now = now.Add(time.Second) {
			v.now = now
			for d, h := range v.held {
				if h.run == "hog" && !now.Before(ends) || h.run != "hog" && !now.Before(h.until) {
					delete(v.held, d)
				}
			}
			if len(v.held) == 0 && !now.Before(ends) {
				if late := now.Sub(ends); late > Horizon {
					t.Fatalf("case %d: big starts %s late", n, late)
				}
				break
			}
			if now.Sub(ends) > Horizon {
				t.Fatalf("case %d: big still waits for %v", n, v.held)
			}
			for _, d := range devices {
				limit := time.Duration(1+random.IntN(150)) * time.Second
				job := Ticket{Run: fmt.Sprint(d, now), Since: now, Devices: devices, Count: 1, Least: 1, Limit: limit}
				if _, held := v.held[d]; !held && len(v.against(job, []string{d})) == 0 {
					v.held[d] = holding{run: job.Run, until: now.Add(limit)}
				}
			}
		}
	}
}

// TestYoungerDoNotDelayAlternatives: a gang that may start on any one of several hosts claims GPUs on all of
// them. It must start when the first of these hosts has enough GPUs, as if no other gang had come after it. If
// younger jobs have limits, it may start Horizon later.
func TestYoungerDoNotDelayAlternatives(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	ahead := 0
	for n := range 400 {
		limited := n%2 == 1
		hosts := make([]view, 1+random.IntN(4))
		ends := make([]map[string]time.Time, len(hosts)) // the rule does not know these times
		tickets := make([]Ticket, len(hosts))
		const count = 3
		var drained time.Time
		for i := range hosts {
			devices := gpus(count + random.IntN(3))
			tickets[i] = ticket("big", 9, count, devices...)
			hosts[i] = at(map[string]holding{}, tickets[i])
			ends[i] = map[string]time.Time{}
			var free []time.Time
			for k, d := range devices {
				end := epoch
				if k < len(devices)-count+1 || random.IntN(2) == 0 {
					end = epoch.Add(time.Duration(1+random.IntN(300)) * time.Second)
					hosts[i].held[d], ends[i][d] = holding{run: "old"}, end
				}
				free = append(free, end)
			}
			slices.SortFunc(free, time.Time.Compare)
			if at := free[count-1]; drained.IsZero() || at.Before(drained) {
				drained = at
			}
		}
		latest := drained
		if limited {
			latest = drained.Add(Horizon)
		}
		started := false
		for now := epoch; !started; now = now.Add(time.Second) {
			if now.After(latest) {
				t.Fatalf("case %d: big has not started %s after the first host could have had it", n, now.Sub(drained))
			}
			for i := range hosts {
				v := &hosts[i]
				v.now = now
				for d, end := range ends[i] {
					if !now.Before(end) {
						delete(v.held, d)
						delete(ends[i], d)
					}
				}
				for _, d := range tickets[i].Devices { // they come faster than big looks
					young := Ticket{Run: fmt.Sprint("young", i, d, now), Since: now, Devices: tickets[i].Devices, Count: 1, Least: 1}
					keep := time.Duration(1+random.IntN(100)) * time.Second
					if limited {
						young.Limit = keep
					}
					if _, held := v.held[d]; !held && len(v.against(young, []string{d})) == 0 {
						ahead++
						v.held[d], ends[i][d] = holding{run: young.Run}, now.Add(keep)
						if limited {
							v.held[d] = holding{run: young.Run, until: now.Add(keep)}
						}
					}
				}
				started = started || len(v.spare(tickets[i])) >= count
			}
		}
	}
	if ahead == 0 {
		t.Error("no younger job ever went ahead, even on GPUs that big did not need")
	}
}

// TestEarliestOfSeveralHosts: the time that Earliest returns must be the first moment at which enough GPUs can
// be idle.
func TestEarliestOfSeveralHosts(t *testing.T) {
	ready := func(minutes ...int) *Waiting {
		w := &Waiting{}
		for _, m := range minutes {
			w.Ready = append(w.Ready, epoch.Add(time.Duration(m)*time.Minute))
		}
		return w
	}
	for _, c := range []struct {
		n     int
		hosts []*Waiting
		want  int // minutes; -1 means not known
	}{
		{1, []*Waiting{ready(3, 5)}, 3}, {2, []*Waiting{ready(3, 5)}, 5}, {3, []*Waiting{ready(3, 5)}, -1},
		{3, []*Waiting{ready(3, 5), ready(0, 4)}, 4}, {3, []*Waiting{ready(3, 5), nil}, -1}, {0, nil, -1},
	} {
		want := time.Time{}
		if c.want >= 0 {
			want = epoch.Add(time.Duration(c.want) * time.Minute)
		}
		if got := Earliest(c.n, c.hosts...); !got.Equal(want) {
			t.Errorf("Earliest(%d, %v) is %s, want %s", c.n, c.hosts, got, want)
		}
	}
}

// TestManyTicketsAreSoonJudged: users write as many tickets as possible, each as long as possible. The time for
// the rule must not grow with the product of the two.
func TestManyTicketsAreSoonJudged(t *testing.T) {
	fakes := make([]string, MaxDevices)
	for i := range fakes {
		fakes[i] = fmt.Sprint("fake", i)
	}
	for name, devices := range map[string]func(i int) []string{
		"the same GPUs":    func(int) []string { return fakes },
		"overlapping GPUs": func(i int) []string { return slices.Concat(fakes[i%MaxDevices:], fakes[:i%MaxDevices], nil) },
	} {
		v := at(nil)
		for i := range 512 {
			v.tickets = append(v.tickets, ticket(fmt.Sprint("t", i), 9, MaxDevices, devices(i)...))
		}
		steps := 0
		key := v.key
		v.key = func(d string) string { steps++; return key(d) }
		if spare := v.spare(ticket("me", 1, 2, "GPU0", "GPU1")); len(spare) != 2 {
			t.Errorf("%s: spare are %v", name, spare)
		}
		if limit := 4 * 512 * MaxDevices; steps > limit {
			t.Errorf("%s: %d GPUs were looked at for 512 tickets", name, steps)
		}
	}
}
