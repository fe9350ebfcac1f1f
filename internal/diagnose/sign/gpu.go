package sign

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// NoGPU returns the first of some signs that says that a GPU could not be used, if g may only show that: it counts GPUs,
// chooses one, or requires one. It returns nil if there is none before g.
func (g *Sign) NoGPU(signs []*Sign) *Sign {
	switch g.Rule.Category {
	case job.SemanticError, job.Assertion, job.Traceback, job.IncorrectInputs:
		if !gpus.MatchString(g.Title) && !gpus.MatchString(lastFrames(g.Context)) {
			return nil
		}
		for _, o := range signs {
			if o.Rule.Category == job.CUDAInit && o.To <= g.From {
				return o
			}
		}
	}
	return nil
}

// lastFrames returns the last two frames of a traceback.
func lastFrames(frames string) string {
	i := strings.LastIndexByte(strings.TrimRight(frames, "\n"), '\n')
	return frames[strings.LastIndexByte(frames[:max(i, 0)], '\n')+1:]
}

var gpus = textmatch.New(`(?i)\b(?:num_?|n_?|local_?|physical_?|logical_?|visible_?|all_?)?(?:gpus?|cuda|devices?)(?:_?list|_?ids?|_?count|_?names?)?\b|/gpu:\d|\bdevice_count\b|\bis_available\b`)
