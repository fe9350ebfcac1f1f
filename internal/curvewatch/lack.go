package curvewatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/metrics"
	"github.com/gangrun/gangrun/internal/text"
)

// patience is how long a job may report other metrics, or progress, before gangrun tells the user that the job
// does not report the metric that the user has named.
const patience = time.Minute

// lack decides when gangrun tells the user that the metric that the user has named was not found. gangrun does so once
// while the job runs, and at the end of each attempt.
type lack struct {
	metric   string // "" if the user has named none
	progress bool   // ranks have reported progress
	first    time.Time
	told     bool
}

// found reports whether the job has the metric. seen has the names of the other metrics.
func (l *lack) found(t *track) (found bool, seen []string) {
	all := make([]metrics.Candidate, len(t.series))
	for i, s := range t.series {
		all[i].Name = s.name
		if !slices.Contains(seen, s.name) {
			seen = append(seen, s.name)
		}
	}
	slices.Sort(seen)
	return l.metric == "" || metrics.Named(all, l.metric) >= 0, seen
}

// during returns a message for the user while the job runs. It returns "" if there is nothing to say.
func (l *lack) during(t *track, now time.Time) string {
	found, seen := l.found(t)
	if found || len(seen) == 0 && !l.progress || l.told {
		return ""
	}
	if l.first.IsZero() {
		l.first = now
	}
	if now.Sub(l.first) < patience {
		return ""
	}
	l.told = true
	return l.text("so far ", seen)
}

// atEnd returns a message for the user at the end of an attempt. It returns "" if there is nothing to say. This is also
// the case if the attempt failed before it had reported anything, because the attempt then has another problem.
func (l *lack) atEnd(t *track, good bool) string {
	found, seen := l.found(t)
	if found || len(seen) == 0 && !l.progress && !good {
		return ""
	}
	return l.text("", seen)
}

// most limits how many names of metrics a message has.
const most = 12

func (l *lack) text(when string, seen []string) string {
	others := "no other either"
	if len(seen) > 0 {
		others = "seen: " + text.Some(seen, most)
	}
	return fmt.Sprintf("no metric %q was found %s(--metric); %s", l.metric, when, others)
}
