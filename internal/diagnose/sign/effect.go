package sign

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// EffectOf returns the sign of which g is the effect: the first of signs that comes before g and explains g. It
// returns nil if there is none. If g is about counting, choosing or requiring GPUs, a sign that a GPU could not be
// used explains it. If g is about reading or writing, a failure of storage explains it, unless the program goes on in
// another way after that failure.
func (g *Sign) EffectOf(signs []*Sign) *Sign {
	var why job.Category
	switch g.Rule.Category {
	case job.SemanticError, job.Assertion, job.Traceback, job.IncorrectInputs:
		switch {
		case gpus.MatchString(g.Title), gpus.MatchString(lastFrames(g.Context)):
			why = job.CUDAInit
		case (g.Class == rule.Message || strings.HasPrefix(g.Class, "for")) && transfer.MatchString(g.Title):
			why = job.StorageError
		}
	}
	for _, o := range signs {
		if why != "" && o.Rule.Category == why && o.To <= g.From && (why == job.CUDAInit || !outlook.Recovers(o.Title)) {
			return o
		}
	}
	return nil
}

// transfer matches the words with which a program says that it could not read or write.
var transfer = textmatch.New(`(?i)\b(?:error|fail\w*|cannot|could not|unable)\b.{0,40}\b(?:read|writ|flush|clos|sync|sav|stor)(?:e|ing|ten)?\b|\b(?:read|writ|flush|clos|sync|sav|stor)(?:e|ing|ten)?\b.{0,60}\bfailed\b|\bnf(?:90)?_(?:put|get|sync|close)|\bI/?O error`)

// lastFrames returns the last two frames of a traceback.
func lastFrames(frames string) string {
	i := strings.LastIndexByte(strings.TrimRight(frames, "\n"), '\n')
	return frames[strings.LastIndexByte(frames[:max(i, 0)], '\n')+1:]
}

var gpus = textmatch.New(`(?i)\b(?:num_?|n_?|local_?|physical_?|logical_?|visible_?|all_?)?(?:gpus?|cuda|devices?)(?:_?list|_?ids?|_?count|_?names?)?\b|/gpu:\d|\bdevice_count\b|\bis_available\b`)
