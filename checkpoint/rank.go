package checkpoint

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/naming"
)

// rank returns the candidates of the highest tier, newest first. The candidates with a step are in the order of
// their steps, and the candidates without a step are put among them by time. Candidates that are named as the
// best checkpoint come after the others. A candidate whose name says that it is the previous version of another
// candidate comes directly after that candidate. whole is true if dir itself is a checkpoint. dir is then the
// last candidate, and the files in dir are no candidates of their own.
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

// parted separates the candidates whose names say that they are previous versions of another candidate.
// followers has these, by the path of the newest version, the newest first. rest has all other candidates.
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
