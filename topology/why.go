package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// why says in sentences what was chosen and what decided it.
func (s *survey) why(p *plan, c *Choice) []string {
	var why []string
	for _, pick := range p.picks {
		v := &s.views[pick.view]
		why = append(why, fmt.Sprintf("host %s gives %d of %s", v.host.Name, pick.set.count(), count(v.free.count(), "free GPU")))
	}
	switch c.Level {
	case job.LocalityIsland:
		if n := s.want.Ranks * s.want.GPUs; n > 1 {
			why = append(why, fmt.Sprintf("no %d GPUs of host %s are joined better", n, c.Placement.Hosts[0].Name))
		}
	case job.LocalityHost:
		why = append(why, fmt.Sprintf("with GPUs of host %s that are busy it would be joined better", c.Placement.Hosts[0].Name))
	}
	if p.ring != NoRing {
		why = append(why, "the slowest link on the best ring through its GPUs, which all-reduce goes along, is "+linkText(p.ring, map[int32]bool{}))
	}
	if c.RunnerUp == nil {
		if v := &s.views[p.picks[0].view]; len(p.picks) == 1 && v.free != p.picks[0].set && s.want.Locality != job.LocalityIsland {
			return append(why, fmt.Sprintf("other free GPUs of host %s would do as well", v.host.Name))
		}
		return append(why, "there is no other way to place it")
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

// listed names a few of many.
func listed(names []string) string {
	const few = 6
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// nowhere says why nothing was chosen.
func (s *survey) nowhere(inventory job.Inventory, not job.Excluded) error {
	idle := look(s.want, inventory, not, true)
	gang := count(s.want.Ranks, "GPU")
	if s.want.GPUs > 1 {
		gang = fmt.Sprintf("%s of %d GPUs", count(s.want.Ranks, "rank"), s.want.GPUs)
	}
	where := map[job.Locality]string{
		job.LocalityIsland: " on one island", job.LocalityHost: " on one host", job.LocalityRack: " in one rack",
	}[s.want.Locality]
	most, place := idle.most(s.want.Locality)
	if most < s.want.Ranks {
		e := &NoPlacement{
			Text: fmt.Sprintf("%s%s will never fit: there is room for %d at most", gang, where, most*s.want.GPUs),
			Hint: "ask for fewer ranks, or for more hosts; see which GPUs are sick or excluded with: gangrun topo",
		}
		if place != "" {
			e.Text += ", " + place
		}
		if most == 0 {
			e.Text = fmt.Sprintf("%s%s will never fit: no host has %s and a slot that a rank may use", gang, where, count(s.want.GPUs, "GPU"))
		}
		if wider, _ := idle.most(job.LocalityAny); wider >= s.want.Ranks {
			e.Hint = fmt.Sprintf("ask for fewer ranks, or allow a wider locality than %s", s.want.Locality)
		}
		return e
	}
	e := &NoPlacement{Ever: true, Way: s.blockers(idle)}
	now, place := s.most(s.want.Locality)
	do := "do"
	if s.want.Ranks == 1 {
		do = "does"
	}
	e.Text = fmt.Sprintf("%s%s %s not fit now: there is room for %d", gang, where, do, now*s.want.GPUs)
	if place != "" && now > 0 {
		e.Text += ", " + place
	}
	if now >= s.want.Ranks {
		e.Text = fmt.Sprintf("%s%s %s not fit now: those that are free on one host are joined worse than others of it", gang, where, do)
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
	return e
}

// rooms sums up the ranks that there is room for in each place of a level.
func (s *survey) rooms(level job.Locality) map[int]int {
	rooms := map[int]int{}
	for i := range s.views {
		v := &s.views[i]
		switch level {
		case job.LocalityIsland, job.LocalityHost:
			rooms[i] = v.cap
		case job.LocalityRack:
			rooms[v.rack] += v.cap
		default:
			rooms[0] += v.cap
		}
	}
	return rooms
}

// most is the number of ranks for which there is room in one place of a level,
// and which place that is.
func (s *survey) most(level job.Locality) (int, string) {
	most, place := 0, ""
	rooms := s.rooms(level)
	for i := range s.views {
		v := &s.views[i]
		switch level {
		case job.LocalityIsland, job.LocalityHost:
			if rooms[i] > most {
				most, place = rooms[i], "on host "+v.host.Name
			}
		case job.LocalityRack:
			if rooms[v.rack] > most {
				most, place = rooms[v.rack], ""
				if v.host.Rack != "" {
					place = "in rack " + v.host.Rack
				}
			}
		default:
			most = rooms[0]
		}
	}
	return most, place
}

// blockers lists the busy GPUs of the places that could take the gang if nothing
// were busy.
func (s *survey) blockers(idle *survey) []Blocker {
	rooms := idle.rooms(s.want.Locality)
	var views []*view
	for i := range s.views {
		v := &s.views[i]
		room := rooms[0]
		switch s.want.Locality {
		case job.LocalityIsland, job.LocalityHost:
			room = rooms[i]
		case job.LocalityRack:
			room = rooms[v.rack]
		}
		if room >= s.want.Ranks {
			views = append(views, v)
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
