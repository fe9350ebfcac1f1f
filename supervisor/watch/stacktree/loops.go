package stacktree

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// latest returns the telling thread of each rank, and the ranks in order. A thread is that of the last look, or
// that of an earlier look if no tool could read the stack at the last one.
func latest(looks [][]job.RankStack) (threads map[int]job.ThreadStack, numbers []int) {
	threads = map[int]job.ThreadStack{}
	for _, look := range looks {
		for _, s := range look {
			if t := telling(s); len(t.Frames) > 0 || len(threads[s.Rank].Frames) == 0 || fixed(t.State) != "" {
				threads[s.Rank] = t
			}
		}
	}
	return threads, slices.Sorted(maps.Keys(threads))
}

// seen is where a rank was at a look.
type seen struct {
	path   string // a text that distinguishes the place from others
	frames []job.Frame
}

// loops returns, for each rank that is in a loop, the frames that its stacks at all looks have in common.
func loops(looks [][]job.RankStack) map[int][]job.Frame {
	places := map[int][]seen{}
	for _, look := range looks {
		for _, s := range look {
			t := telling(s)
			p := placeOf(t)
			if p.kind == progress { // the functions of a library say little
				p.frames = p.frames[max(userFrame(p.frames), 0):]
			}
			if len(p.frames) > 0 && fixed(t.State) == "" {
				places[s.Rank] = append(places[s.Rank], seen{pathOf(p.frames), p.frames})
			}
		}
	}
	found := map[int][]job.Frame{}
	for rank, at := range places {
		frames, moves := at[0].frames, false
		for _, s := range at[1:] {
			moves = moves || s.path != at[0].path
			frames = enclosing(frames, s.frames)
		}
		if moves && userFrame(frames) >= 0 {
			found[rank] = frames
		}
	}
	joined := map[int][]job.Frame{}
	for rank, at := range places {
		for _, other := range slices.Sorted(maps.Keys(found)) {
			if found[rank] == nil && slices.ContainsFunc(places[other], func(s seen) bool { return s.path == at[len(at)-1].path }) {
				joined[rank] = found[other]
			}
		}
	}
	maps.Copy(found, joined)
	return found
}

// pathOf returns a text that distinguishes the place with these frames from others.
func pathOf(frames []job.Frame) string {
	var b strings.Builder
	for i, f := range frames {
		b.WriteString(key(f, i == 0) + "\x01")
	}
	return b.String()
}

// enclosing returns the frames that are in both stacks, beginning with the outermost one. In the innermost of
// these frames, the stacks may be at different lines.
func enclosing(a, b []job.Frame) []job.Frame {
	all := common(a, b)
	if n := len(all); n < len(a) && n < len(b) {
		f, g := a[len(a)-1-n], b[len(b)-1-n]
		if f.Function == g.Function && f.File == g.File {
			f.Line = 0
			return append([]job.Frame{f}, all...)
		}
	}
	return all
}

// loopIn names the innermost of the user's functions that contains a loop.
func loopIn(frames []job.Frame) string {
	f := frames[userFrame(frames)]
	return " in " + short(f.Function) + at(f)
}
