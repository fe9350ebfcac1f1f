package compare

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// limits has, for each kind of speed, the share of the median at or below which a speed is slow. The share is
// small for kinds whose measurement varies much even on healthy hosts. The speed of a disk depends on other
// programs that write, and the speed of one TCP connection on other work of the CPUs.
var limits = map[job.SpeedKind]struct{ warn, note float64 }{
	job.SpeedCPU:        {warn: 1. / 2},
	job.SpeedMemory:     {warn: 1. / 2},
	job.SpeedCheckpoint: {warn: 1. / 5},
	job.SpeedLog:        {warn: 1. / 5},
	job.SpeedMatmul:     {warn: 1. / 2, note: 3. / 4},
	job.SpeedGPUCopy:    {warn: 1. / 2, note: 3. / 4},
	job.SpeedUpload:     {warn: 1. / 2, note: 3. / 4},
	job.SpeedLink:       {warn: 1. / 3},
	job.SpeedTrips:      {warn: 1. / 4},
}

// Limits returns two shares of the median speed. A speed of at most warn times the median is worth a warning,
// and a speed of at most note times the median is worth a note. note is 0 if speeds of this kind are never
// worth a note.
func Limits(kind job.SpeedKind) (warn, note float64) { return limits[kind].warn, limits[kind].note }

// SlowTrip is by how much a round trip must be longer than the median to count as slow.
const SlowTrip = 500 * time.Microsecond

// spread is how far a slow speed must be from the median, in robust standard deviations of the logarithms of
// all speeds. So if the speeds are widely spread, none of them is slow.
const spread = 4

// Slow is a speed, or several speeds of one host, far below the median of the peers.
type Slow struct {
	Kind job.SpeedKind
	// Hosts has the slow host or, for a slow link, its two hosts. If it is not clear which host is slow, Hosts
	// has all hosts that differ.
	Hosts []string
	// Pair is true for a slow link between two hosts whose other links are not slow. Unclear is true if half of
	// the compared speeds, or more, are slow. It is then not clear whether the slow speeds or the others are
	// wrong.
	Pair, Unclear bool
	// Speeds has the slow speeds, the slowest first. If Unclear is true, it has the slowest and the fastest of
	// all speeds.
	Speeds []job.Speed
	Median float64 // the median of all compared speeds
	Peers  int     // the number of compared speeds
	Note   bool    // the speed is worth a note, but not a warning
}

// SlowSpeeds finds the speeds that are far slower than their peers, in the order of
// job.SpeedKinds.
func SlowSpeeds(speeds []job.Speed) (all []Slow) {
	for _, kind := range job.SpeedKinds() {
		var models []string
		of := map[string][]job.Speed{}
		for _, s := range speeds {
			if s.Kind != kind || s.Value <= 0 {
				continue
			}
			if of[s.Model] == nil {
				models = append(models, s.Model)
			}
			of[s.Model] = append(of[s.Model], s)
		}
		for _, model := range models {
			if kind.OfLink() {
				all = append(all, slowLinks(kind, of[model])...)
			} else {
				all = append(all, slowParts(kind, of[model])...)
			}
		}
	}
	return all
}

// slowParts finds slow parts of hosts, such as cores or GPUs.
func slowParts(kind job.SpeedKind, parts []job.Speed) (all []Slow) {
	median, slow := slowest(kind, parts)
	if len(slow) == 0 {
		return nil
	}
	hosts, whole := hostsOf(parts), 0 // whole is the number of hosts all of whose parts are slow
	for _, h := range hosts {
		if len(on(slow, h)) == len(on(parts, h)) {
			whole++
		}
	}
	if 2*len(slow) >= len(parts) || 2*whole >= len(hosts) {
		return []Slow{unclear(kind, hosts, parts, median)}
	}
	for _, h := range hostsOf(slow) {
		s := on(slow, h)
		all = append(all, Slow{Kind: kind, Hosts: []string{h}, Speeds: s, Median: median, Peers: len(parts), Note: s[0].Value > limits[kind].warn*median})
	}
	return all
}

// Values of Speed.Of. They mark a Speed as that of a host's best link in one direction.
const (
	Sends    = "sends"
	Receives = "receives"
)

// slowLinks finds hosts all of whose links are slow in one direction, and slow links between
// other hosts.
func slowLinks(kind job.SpeedKind, links []job.Speed) []Slow {
	var ends []job.Speed // of each host and direction: its fastest link, since the other host may slow down the rest
	better := func(host, of string, l job.Speed) {
		at := slices.IndexFunc(ends, func(e job.Speed) bool { return e.Host == host && e.Of == of })
		if at < 0 {
			ends = append(ends, job.Speed{Host: host, Kind: kind, Of: of})
			at = len(ends) - 1
		}
		ends[at].Value = max(ends[at].Value, l.Value)
	}
	for _, l := range links {
		sends, receives := Sends, Receives
		if kind == job.SpeedTrips { // a round trip counts for both directions
			sends, receives = "", ""
		}
		better(l.Host, sends, l)
		better(l.Of, receives, l)
	}
	all := slowParts(kind, ends)
	if len(all) == 1 && all[0].Unclear {
		return []Slow{unclear(kind, all[0].Hosts, links, all[0].Median)}
	}
	var odd []string
	for i := range all {
		odd = append(odd, all[i].Hosts...)
		all[i].Peers = len(hostsOf(ends))
	}
	median, _ := slowest(kind, ends)
	// This also finds slow hosts if the speeds of the others are spread too widely for slowParts.
	for _, host := range hostsOf(ends) {
		if !slices.Contains(odd, host) && allSlow(kind, links, host, median) {
			all = append(all, Slow{Kind: kind, Hosts: []string{host}, Speeds: on(ends, host), Median: median, Peers: len(hostsOf(ends))})
			odd = append(odd, host)
		}
	}
	for _, l := range links {
		if slices.Contains(odd, l.Host) || slices.Contains(odd, l.Of) || !isSlow(kind, l.Value, median) {
			continue
		}
		at := slices.IndexFunc(all, func(s Slow) bool {
			return s.Pair && slices.Contains(s.Hosts, l.Host) && slices.Contains(s.Hosts, l.Of)
		})
		if at < 0 {
			all = append(all, Slow{Kind: kind, Hosts: []string{l.Host, l.Of}, Pair: true, Speeds: []job.Speed{l}, Median: median, Peers: len(hostsOf(ends))})
		} else {
			all[at].Speeds = append(all[at].Speeds, l)
		}
	}
	return all
}

// allSlow reports whether all links of a host are slow, and some of the others are not.
func allSlow(kind job.SpeedKind, links []job.Speed, host string, median float64) bool {
	slow, others := 0, false
	for _, l := range links {
		of := l.Host == host || l.Of == host
		switch is := isSlow(kind, l.Value, median); {
		case of && !is:
			return false
		case of:
			slow++
		case !is:
			others = true
		}
	}
	return slow > 0 && others
}

// slowest returns the median of some speeds, and the slow speeds, the slowest first. If the number
// of speeds is even, the median is the greater one of the two in the middle.
func slowest(kind job.SpeedKind, speeds []job.Speed) (median float64, slow []job.Speed) {
	values := make([]float64, len(speeds))
	for i, s := range speeds {
		values[i] = s.Value
	}
	slices.Sort(values)
	median = values[len(values)/2]
	var off []float64
	for _, v := range values {
		off = append(off, math.Abs(math.Log(v/median)))
	}
	slices.Sort(off)
	// The median absolute deviation of a normal distribution is 0.6745 standard deviations.
	deviation := off[(len(off)-1)/2] / 0.6745
	for _, s := range speeds {
		if isSlow(kind, s.Value, median) && math.Log(median/s.Value) > spread*deviation {
			slow = append(slow, s)
		}
	}
	slices.SortStableFunc(slow, func(a, b job.Speed) int { return cmp.Compare(a.Value, b.Value) })
	return median, slow
}

// isSlow reports whether a speed is slow enough for at least a note.
func isSlow(kind job.SpeedKind, value, median float64) bool {
	if kind == job.SpeedTrips && 1/value-1/median < SlowTrip.Seconds() {
		return false
	}
	return value <= max(limits[kind].note, limits[kind].warn)*median
}

// unclear returns the Slow for hosts of which half or more are slow.
func unclear(kind job.SpeedKind, hosts []string, speeds []job.Speed, median float64) Slow {
	by := func(a, b job.Speed) int { return cmp.Compare(a.Value, b.Value) }
	low, high := slices.MinFunc(speeds, by), slices.MaxFunc(speeds, by)
	return Slow{Kind: kind, Hosts: hosts, Unclear: true, Speeds: []job.Speed{low, high}, Median: median, Peers: len(speeds),
		Note: low.Value > limits[kind].warn*high.Value}
}

// hostsOf returns the hosts of some speeds, each once.
func hostsOf(speeds []job.Speed) (hosts []string) {
	for _, s := range speeds {
		if !slices.Contains(hosts, s.Host) {
			hosts = append(hosts, s.Host)
		}
	}
	return hosts
}

// on returns the speeds of one host.
func on(speeds []job.Speed, host string) []job.Speed {
	return slices.DeleteFunc(slices.Clone(speeds), func(s job.Speed) bool { return s.Host != host })
}

// Faster combines two measurements of the same hosts. It keeps the better value of each speed, because a
// healthy part may be slow for a moment, but a faulty part is never fast.
func Faster(first, second []job.Speed) []job.Speed {
	out := slices.Clone(first)
	for _, s := range second {
		at := slices.IndexFunc(out, func(o job.Speed) bool { return o.Host == s.Host && o.Kind == s.Kind && o.Of == s.Of })
		if at < 0 {
			out = append(out, s)
		} else if s.Value > out[at].Value {
			out[at] = s
		}
	}
	return out
}
