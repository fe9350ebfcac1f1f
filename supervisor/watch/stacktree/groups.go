// Package stacktree groups the ranks of a gang by their stacks, and finds the group that probably
// holds up the others. It follows STAT, the stack trace analysis tool for MPI programs.
package stacktree

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// node is a node of the prefix tree: a frame, below the frame that has called it.
type node struct {
	below  map[string]*node
	groups map[string]*group // of the ranks whose path ends here, by their states
}

type group struct {
	job.StackGroup
	place place
}

// Groups merges the stacks of ranks into a prefix tree. The tree begins with the outermost frames and ends
// where the frames no longer mean anything to the user. Ranks with the same path through the tree are one
// group; ranks that cannot run must also be in the same state. The largest group comes first.
func Groups(stacks []job.RankStack) []job.StackGroup {
	root := &node{}
	var all []*group
	sorted := slices.SortedFunc(slices.Values(stacks), func(a, b job.RankStack) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, s := range sorted {
		t := telling(s)
		p := placeOf(t)
		n := root
		for i, f := range slices.Backward(p.frames) {
			n = n.child(key(f, i == 0 && t.State == job.ProcessRunning))
		}
		state := string(fixed(t.State))
		if len(p.frames) == 0 {
			state += p.where
			if p.where == "" {
				state += string(t.State) // all that there is to tell ranks apart
			}
		}
		g := n.groups[state]
		if g == nil {
			g = &group{place: p, StackGroup: job.StackGroup{Where: p.where, State: t.State, Frames: t.Frames, Collective: p.kind != nothing, Network: onNetwork(t)}}
			if n.groups == nil {
				n.groups = map[string]*group{}
			}
			n.groups[state] = g
			all = append(all, g)
		}
		g.Ranks = append(g.Ranks, s.Rank)
		g.Frames = common(g.Frames, t.Frames)
	}
	slices.SortStableFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(a.Ranks[0], b.Ranks[0]))
	})
	groups := make([]job.StackGroup, len(all))
	for i, g := range all {
		groups[i] = g.StackGroup
	}
	return groups
}

func (n *node) child(key string) *node {
	if n.below == nil {
		n.below = map[string]*node{}
	}
	if n.below[key] == nil {
		n.below[key] = &node{}
	}
	return n.below[key]
}

// key is what two frames must have in common to be the same. The innermost frame of a rank that runs
// moves from line to line.
func key(f job.Frame, moves bool) string {
	if moves || f.Native && library.Match(f.File) {
		return f.Function + "\x00" + f.File
	}
	return f.Function + "\x00" + f.File + "\x00" + strconv.Itoa(f.Line)
}

// telling returns the thread that says where a rank is: the main thread, or another if that has ended.
func telling(s job.RankStack) (t job.ThreadStack) {
	for i, thread := range s.Threads {
		if i == 0 || thread.Main || t.State == job.ProcessZombie && t.PID == thread.PID && thread.State != job.ProcessZombie {
			t = thread
		}
	}
	return t
}

// fixed returns the state if it is one in which a rank cannot run.
func fixed(s job.ProcessState) job.ProcessState {
	switch s {
	case job.ProcessStopped, job.ProcessTraced, job.ProcessDisk, job.ProcessZombie:
		return s
	}
	return ""
}

// common returns the frames that two stacks have in common, from the outermost one inwards.
func common(a, b []job.Frame) []job.Frame {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}

// maxSpans is how many spans of ranks of a group are written out.
const maxSpans = 8

// Text writes groups on one line, as in "ranks 0-2,4-7 in MPI_Allreduce (train.py:120 average);
// rank 3 in read (loader.py:88 next)".
func Text(groups []job.StackGroup) string {
	var parts []string
	for _, g := range groups {
		parts = append(parts, named(g.Ranks)+" "+stateWords[fixed(g.State)]+in(g))
	}
	return strings.Join(parts, "; ")
}

// in says where a group is.
func in(g job.StackGroup) string {
	if g.Where == "" {
		return "at an unknown place"
	}
	return "in " + g.Where
}

var stateWords = map[job.ProcessState]string{
	job.ProcessStopped: "stopped ", job.ProcessTraced: "stopped by a debugger ", job.ProcessDisk: "hanging in the kernel ", job.ProcessZombie: "ended ",
}

// named names ranks, as in "rank 3" or "ranks 0-2,4".
func named(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	return "ranks " + text.Spans(ranks, maxSpans)
}
