package checkpoint

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/naming"
)

// rank returns the candidates of the highest tier, newest first: by step; those
// without one among them by time; then what is only the best; then dir itself,
// if it is one checkpoint, whose files are none of their own. One whose name
// says that it was before another follows that one.
func rank(dir string, all []candidate, whole bool, join func([]candidate) []candidate) []candidate {
	highest := tierNone
	if whole {
		highest = tierKnown
	}
	for _, c := range all {
		highest = max(highest, c.tier)
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.tier < highest || whole && !c.dir })
	all = join(all)
	all, followers := parted(all)
	var steps, times, last []candidate
	for _, c := range all {
		switch {
		case c.last:
			last = append(last, c)
		case c.step >= 0:
			steps = append(steps, c)
		default:
			times = append(times, c)
		}
	}
	slices.SortFunc(steps, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.step, a.step), byTime(a, b)) })
	pairs(steps)
	slices.SortFunc(times, byTime)
	slices.SortFunc(last, byTime)
	var out []candidate
	add := func(c candidate) { out = append(append(out, c), followers[c.path]...) }
	for len(steps) > 0 || len(times) > 0 {
		from := &steps
		if len(steps) == 0 || len(times) > 0 && times[0].time.After(steps[0].time) {
			from = &times
		}
		add((*from)[0])
		*from = (*from)[1:]
	}
	for _, c := range last {
		add(c)
	}
	if whole {
		out = append(out, candidate{path: dir, step: -1, dir: true, checked: &checked{}})
	}
	return out
}

// parted takes out those whose names say that they were before another that is
// there, and returns them by the path of that one, the latest first.
func parted(all []candidate) (rest []candidate, followers map[string][]candidate) {
	leads := map[string]bool{}
	for _, c := range all {
		leads[c.path] = true
	}
	ages := map[string]int64{}
	followers = map[string][]candidate{}
	for _, c := range all {
		lead := c.path
		for {
			of, ago, ok := naming.Predecessor(filepath.Base(lead))
			if of = filepath.Join(filepath.Dir(lead), of); !ok || !leads[of] {
				break
			}
			lead = of
			ages[c.path] += ago
		}
		if lead == c.path {
			rest = append(rest, c)
		} else {
			followers[lead] = append(followers[lead], c)
		}
	}
	for _, f := range followers {
		slices.SortFunc(f, func(a, b candidate) int { return cmp.Or(cmp.Compare(ages[a.path], ages[b.path]), byTime(a, b)) })
	}
	return rest, followers
}

// byTime orders the newer first.
func byTime(a, b candidate) int {
	return cmp.Or(b.time.Compare(a.time), strings.Compare(b.path, a.path))
}
