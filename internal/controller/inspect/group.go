package inspect

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Group groups ranks whose main threads have the same stack, or wait for the same where no stack is
// known. The largest group comes first.
func Group(stacks []job.RankStack) []job.StackGroup {
	groups := []job.StackGroup{}
	byKey := map[string]int{}
	for _, s := range stacks {
		g := groupOf(s)
		key := fmt.Sprint(g.Where, g.State, g.Frames)
		i, ok := byKey[key]
		if !ok {
			i = len(groups)
			byKey[key] = i
			groups = append(groups, g)
		}
		groups[i].Ranks = append(groups[i].Ranks, s.Rank)
	}
	for _, g := range groups {
		slices.Sort(g.Ranks)
	}
	slices.SortFunc(groups, func(a, b job.StackGroup) int {
		if n := len(b.Ranks) - len(a.Ranks); n != 0 {
			return n
		}
		return a.Ranks[0] - b.Ranks[0]
	})
	return groups
}

// groupOf returns the group of a rank, without its number.
func groupOf(s job.RankStack) job.StackGroup {
	if len(s.Threads) == 0 {
		return job.StackGroup{Where: "an unknown place: " + s.Error}
	}
	main := s.Threads[0]
	g := job.StackGroup{State: main.State, Frames: main.Frames}
	var inner, script string
	for _, f := range main.Frames {
		if f.Native && inner == "" && script == "" {
			inner = f.Function
		}
		if !f.Native && script == "" {
			script = fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, f.Function)
		}
	}
	switch {
	case inner != "" && script != "":
		g.Where = fmt.Sprintf("%s (%s)", inner, script)
	case inner+script != "":
		g.Where = inner + script
	case main.Syscall+main.Wait != "":
		g.Where = strings.TrimSpace(main.Syscall + " " + main.Wait)
	default:
		g.Where = "code of its own"
	}
	return g
}
