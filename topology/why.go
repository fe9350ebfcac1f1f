package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// why returns sentences that say what was chosen, and for what reason.
func (s *survey) why(p *plan, c *Choice) []string {
	var why []string
	for _, pick := range p.picks {
		v := &s.views[pick.view]
		why = append(why, fmt.Sprintf("host %s gives %d of %s", v.host.Name, pick.set.count(), count(v.free.count(), "free GPU")))
	}
	switch c.Level {
	case job.LocalityIsland:
		if n := s.want.Ranks * s.want.GPUs; n > 1 && c.UnknownLinks() == 0 {
			why = append(why, fmt.Sprintf("no %d GPUs of host %s are joined better", n, c.Placement.Hosts[0].Name))
		}
	case job.LocalityHost:
		why = append(why, fmt.Sprintf("with GPUs of host %s that are busy it would be joined better", c.Placement.Hosts[0].Name))
	}
	if n := c.UnknownLinks(); n > 0 {
		why = append(why, fmt.Sprintf("how GPUs are linked is not known of %s of its GPUs that share a host: they count as joined worst", count(n, "pair")))
	}
	if p.ring != NoRing && p.ring != 0 {
		why = append(why, "the slowest link on the best ring through its GPUs, which all-reduce goes along, is "+linkText(p.ring, map[int32]bool{}))
	}
	if c.RunnerUp == nil {
		return append(why, s.alone(p))
	}
	var hosts []string
	for _, h := range c.RunnerUp.Placement.Hosts {
		hosts = append(hosts, h.Name)
	}
	other := "the runner-up, on " + listed(hosts)
	if len(hosts) == 1 && len(p.picks) == 1 && hosts[0] == c.Placement.Hosts[0].Name {
		other = "the runner-up, on other GPUs of it"
	}
	if d := differ(*c, *c.RunnerUp); len(d) > 0 {
		return append(why, "better than "+other+": "+d[0])
	}
	return append(why, "as good as "+other)
}

// alone returns a sentence about the alternatives to a plan that has no runner-up.
func (s *survey) alone(p *plan) string {
	v := &s.views[s.weakest(p)]
	switch {
	case len(p.picks) > 1:
		return fmt.Sprintf("it cannot be placed%s without host %s", within[s.want.Locality], v.host.Name)
	case s.asGood(p):
		return fmt.Sprintf("other free GPUs of host %s would do as well", v.host.Name)
	case v.shape.ring == nil && v.free != p.picks[0].set:
		return "no other way to place it was found" + within[s.want.Locality]
	}
	return "there is no other way to place it" + within[s.want.Locality]
}

// within has, for each locality, the words that say where the gang must be.
var within = map[job.Locality]string{
	job.LocalityIsland: " on one island", job.LocalityHost: " on one host", job.LocalityRack: " in one rack",
}

// listed names the first few of many things, and counts the others.
func listed(names []string) string {
	const few = 6
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// nowhere returns the error that explains why no placement was found.
func (s *survey) nowhere(inventory job.Inventory, not job.Excluded) error {
	idle := look(s.want, inventory, not, true)
	gang := count(s.want.Ranks, "GPU")
	if s.want.GPUs > 1 {
		gang = fmt.Sprintf("%s of %d GPUs", count(s.want.Ranks, "rank"), s.want.GPUs)
	}
	where := within[s.want.Locality]
	most, place := idle.most(s.want.Locality)
	if most < s.want.Ranks {
		e := &NoPlacement{
			Text: fmt.Sprintf("%s%s will never fit: there is room for %d at most", gang, where, most*s.want.GPUs),
			Hint: idle.never(), Unfit: idle.unfit > 0,
		}
		if place != "" {
			e.Text += ", " + place
		}
		if limits := idle.slotLimits(); len(limits) > 0 {
			e.Text += ", as slots are stated: " + listed(limits)
		}
		if most == 0 {
			e.Text = fmt.Sprintf("%s%s will never fit: no host has %s and a slot that a rank may use", gang, where, count(s.want.GPUs, "GPU"))
		}
		return e
	}
	e := &NoPlacement{Ever: true, Way: s.blockers(idle)}
	now, place := s.most(s.want.Locality)
	e.Text = fmt.Sprintf("%s%s %s not fit now: there is room for %d", gang, where, do(s.want.Ranks), now*s.want.GPUs)
	if place != "" && now > 0 {
		e.Text += ", " + place
	}
	if now >= s.want.Ranks {
		e.Text = fmt.Sprintf("%s%s %s not fit now: those that are free on one host are joined worse than others of it", gang, where, do(s.want.Ranks))
	}
	var busy []string
	for _, b := range e.Way {
		busy = append(busy, fmt.Sprintf("%s of %s (%s)", b.Device, b.Host, b.Busy))
	}
	e.Text += "; busy: " + listed(busy)
	e.Hint = "wait until they are free, or ask for fewer ranks"
	if wider, _ := s.most(job.LocalityAny); s.want.Locality != job.LocalityAny && wider >= s.want.Ranks {
		e.Hint = fmt.Sprintf("wait until they are free, or allow a wider locality than %s", s.want.Locality)
	}
	e.Hint += s.noSlices()
	return e
}

// never returns a hint for a gang that does not fit even if no GPU is busy.
func (s *survey) never() string {
	hint, topo := "ask for fewer ranks", ""
	wide, _ := s.most(job.LocalityAny)
	limits := s.slotLimits()
	if len(limits) > 0 && slices.Max(slices.Collect(maps.Values(s.rooms(s.want.Locality, s.onGPUs)))) >= s.want.Ranks {
		hint += ", or state more slots"
	} else if wide < s.want.Ranks {
		hint += ", or for more hosts"
		if topo = "; see what GPUs there are with: gangrun topo"; s.unfit > 0 {
			topo = "; see which GPUs are sick or excluded with: gangrun topo"
		}
	}
	if wide >= s.want.Ranks {
		hint += fmt.Sprintf(", or allow a wider locality than %s", s.want.Locality)
	}
	return hint + topo + s.noSlices()
}

// noSlices says why MIG instances cannot be used. It returns "" if there are none.
func (s *survey) noSlices() string {
	if s.slices == 0 {
		return ""
	}
	return fmt.Sprintf("; ranks of several GPUs get no MIG instances, of which a CUDA process sees one only: %s can be used by ranks of 1 GPU", count(s.slices, "instance"))
}

// slotLimits names the hosts whose stated slots are fewer than the ranks that their GPUs could take. It names
// only hosts where more slots would make more room in one place.
func (s *survey) slotLimits() []string {
	most, _ := s.most(s.want.Locality)
	rooms := s.rooms(s.want.Locality, s.onGPUs)
	var limits []string
	for i := range s.views {
		if v := &s.views[i]; v.cap < s.onGPUs(v) && rooms[s.place(i, s.want.Locality)] > most {
			limits = append(limits, fmt.Sprintf("%d of host %s", v.cap, v.host.Name))
		}
	}
	return limits
}

// onGPUs returns how many ranks the free GPUs of a host could take if its slots did not matter.
func (s *survey) onGPUs(v *view) int { return v.free.count() / s.want.GPUs }

// onSlots returns how many ranks a host can take with its slots.
func (s *survey) onSlots(v *view) int { return v.cap }

// place returns the number of the place to which a host belongs, on a level.
func (s *survey) place(view int, level job.Locality) int {
	switch level {
	case job.LocalityIsland, job.LocalityHost:
		return view
	case job.LocalityRack:
		return s.views[view].rack
	}
	return 0
}

// rooms returns how many ranks fit in each place of a level.
func (s *survey) rooms(level job.Locality, room func(*view) int) map[int]int {
	rooms := map[int]int{}
	for i := range s.views {
		rooms[s.place(i, level)] += room(&s.views[i])
	}
	return rooms
}

// most returns the largest number of ranks that fit in one place of a level, and the name of this place.
func (s *survey) most(level job.Locality) (int, string) {
	most, place := 0, ""
	rooms := s.rooms(level, s.onSlots)
	for i := range s.views {
		room := rooms[s.place(i, level)]
		if room <= most {
			continue
		}
		most, place = room, ""
		switch h := s.views[i].host; level {
		case job.LocalityIsland, job.LocalityHost:
			place = "on host " + h.Name
		case job.LocalityRack:
			if h.Rack != "" {
				place = "in rack " + h.Rack
			}
		}
	}
	return most, place
}

// blockers returns the busy GPUs of the places that could take the gang if no GPU were
// busy.
func (s *survey) blockers(idle *survey) []Blocker {
	rooms := idle.rooms(s.want.Locality, idle.onSlots)
	var views []*view
	for i := range s.views {
		if rooms[s.place(i, s.want.Locality)] >= s.want.Ranks {
			views = append(views, &s.views[i])
		}
	}
	slices.SortStableFunc(views, func(a, b *view) int { return cmp.Compare(b.free.count(), a.free.count()) })
	var way []Blocker
	for _, v := range views {
		whole := whole(v.host)
		for _, i := range v.usable.without(v.free).members() {
			d := v.host.Devices[whole[i]]
			way = append(way, Blocker{v.host.Name, d.UUID, d.Busy})
		}
	}
	return way
}
