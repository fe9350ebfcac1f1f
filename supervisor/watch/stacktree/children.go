package stacktree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// maxChildren is the maximum number of child processes that Children describes.
const maxChildren = 2

// Children returns a text about where in the code the child processes of a single suspected rank are, because
// the rank may wait for them. It leaves out the process that does the work of the rank. Stopped processes come
// first. It returns "" if there are several ranks or no such processes.
func Children(stacks []job.RankStack, ranks []int) string {
	if len(ranks) != 1 {
		return ""
	}
	i := slices.IndexFunc(stacks, func(s job.RankStack) bool { return s.Rank == ranks[0] })
	if i < 0 {
		return ""
	}
	told := telling(stacks[i])
	var stopped, others []string
	for _, t := range stacks[i].Threads {
		if t.PID == told.PID || t.TID != t.PID {
			continue
		}
		name := fmt.Sprintf("its process %d (%s) is ", t.PID, t.Name)
		p := placeOf(t)
		switch {
		case t.State == job.ProcessStopped:
			stopped = append(stopped, name+"stopped by a signal")
		case userFrame(t.Frames) >= 0:
			others = append(others, name+"in "+p.where)
		}
	}
	all := slices.Concat(stopped, others)
	if more := len(all) - maxChildren; more > 0 {
		all = append(all[:maxChildren], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// Left returns a text that says that ranks have ended.
func Left(ranks []int) string { return named(ranks) + choose(ranks, " has", " have") + " ended" }

// LeftWaiting returns a text that says that ranks have ended, and where the groups of the others wait.
func LeftWaiting(ranks []int, groups []job.StackGroup) string {
	if len(groups) == 1 {
		return Left(ranks) + ", while " + waitFor(groups[0].Ranks) + " " + in(groups[0])
	}
	return Left(ranks) + ", while the others wait: " + some(groups)
}

// Processes returns the process IDs of ranks as a text. The text differs between two calls if the ranks have
// started or ended processes in between. Such ranks are at work, even if they always wait for their processes
// at the same place.
func Processes(stacks []job.RankStack, ranks []int) string {
	var pids []int
	for _, s := range stacks {
		for _, t := range s.Threads {
			if t.TID == t.PID && slices.Contains(ranks, s.Rank) {
				pids = append(pids, t.PID)
			}
		}
	}
	slices.Sort(pids)
	return fmt.Sprint(pids)
}
