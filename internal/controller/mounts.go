package controller

import (
	"sync"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// mountNote emits one note about the directories and files that are mounted in the containers of a run, although the
// user has not named them with --mount.
type mountNote struct{ once sync.Once }

func (n *mountNote) note(spec job.Spec, emit func(job.Event)) {
	if line := automatic(spec.Box()); line != "" {
		n.once.Do(func() { emit(job.Event{Kind: job.KindNote, Text: line}) })
	}
}

// automatic returns a text that names the mounts that a job has without --mount. It returns "" if there are none.
func automatic(box *job.Box) string {
	if box == nil {
		return ""
	}
	var names []string
	for _, m := range box.Mounts {
		if m.Auto {
			names = append(names, text.Printable(m.String()))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "mounted in the containers besides what --mount names: " + text.Some(names, 6)
}
