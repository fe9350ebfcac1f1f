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
//
// If the stacks were read several times, looks has all of them, the latest last. A rank whose stacks differ is in a
// loop. If such a rank was once seen with the same stack as a rank whose stack does not change, both are in the same
// loop. The frames of a loop are those that all its stacks have in common.
func Groups(looks ...[]job.RankStack) []job.StackGroup {
	threads, numbers := latest(looks)
	loops := loops(looks)
	leaves := map[string]bool{} // paths of ranks that run, and so move from line to line
	for _, t := range threads {
		if p := placeOf(t); len(p.frames) > 0 && t.State == job.ProcessRunning {
			leaves[key(p.frames[0], true)] = true
		}
	}
	root := &node{}
	var all []*group
	for _, rank := range numbers {
		t := threads[rank]
		p := placeOf(t)
		if frames, ok := loops[rank]; ok {
			t.Frames = frames
			p = place{where: "a loop" + loopIn(frames), frames: frames}
		}
		n := root
		for i, f := range slices.Backward(p.frames) {
			n = n.child(key(f, i == 0 && leaves[key(f, true)]))
		}
		state := string(fixed(t.State))
		if len(p.frames) == 0 {
			state += p.where
			if p.where == "" {
				state += string(t.State) // only the state distinguishes these ranks
			}
		}
		g := n.groups[state]
		if g == nil {
			g = &group{place: p, StackGroup: job.StackGroup{Where: p.where, State: t.State, Frames: t.Frames, Collective: p.kind != nothing, Network: loops[rank] == nil && onNetwork(t)}}
			if n.groups == nil {
				n.groups = map[string]*group{}
			}
			n.groups[state] = g
			all = append(all, g)
		}
		g.Ranks = append(g.Ranks, rank)
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

// key returns a text that is the same for two frames that count as the same. If moves is true, the line does
// not matter, because the rank runs.
func key(f job.Frame, moves bool) string {
	if moves || f.Native && library.Match(f.File) {
		return f.Function + "\x00" + f.File
	}
	return f.Function + "\x00" + f.File + "\x00" + strconv.Itoa(f.Line)
}

// telling returns the thread that shows where a rank is. This is the main thread, or another thread if the main
// thread has ended. If the main thread sleeps in a program without symbols, such as sleep(1), it is the main
// thread of the process that has started the program.
func telling(s job.RankStack) job.ThreadStack {
	t := mainThread(s)
	if t.State != job.ProcessSleeping || len(t.Frames) == 0 || userFrame(t.Frames) >= 0 || placeOf(t).kind != nothing {
		return t
	}
	i := slices.IndexFunc(s.Threads, func(o job.ThreadStack) bool { return o.PID != t.PID && o.TID == o.PID && userFrame(o.Frames) >= 0 })
	if i < 0 {
		return t
	}
	return s.Threads[i]
}

// mainThread returns the main thread of the process that does the rank's work. If that thread has ended, it
// returns another one.
func mainThread(s job.RankStack) (t job.ThreadStack) {
	for i, thread := range s.Threads {
		if i == 0 || thread.Main || t.State == job.ProcessZombie && t.PID == thread.PID && thread.State != job.ProcessZombie {
			t = thread
		}
	}
	return t
}

// fixed returns s if a process in this state cannot run, and otherwise "".
func fixed(s job.ProcessState) job.ProcessState {
	switch s {
	case job.ProcessStopped, job.ProcessTraced, job.ProcessDisk, job.ProcessZombie:
		return s
	}
	return ""
}

// common returns the frames that two stacks have in common, beginning with the outermost one.
func common(a, b []job.Frame) []job.Frame {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}

// maxSpans is the maximum number of spans of ranks that are written for a group.
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

// maxGroups is the maximum number of groups that some writes.
const maxGroups = 4

// some writes the largest groups on one line.
func some(groups []job.StackGroup) string {
	if more := len(groups) - maxGroups; more > 0 {
		return Text(groups[:maxGroups]) + "; and " + strconv.Itoa(more) + " more groups"
	}
	return Text(groups)
}

// in returns where a group is.
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
