package controller

import (
	"sync"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// mountNote notes once what is mounted in the containers of a run though its user has not named it with
// --mount.
type mountNote struct{ once sync.Once }

func (n *mountNote) note(spec job.Spec, emit func(job.Event)) {
	if line := automatic(spec.Box()); line != "" {
		n.once.Do(func() { emit(job.Event{Kind: job.KindNote, Text: line}) })
	}
}

// automatic names the mounts that a job has without --mount; "" if there are none.
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
