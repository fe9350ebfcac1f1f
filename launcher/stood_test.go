package launcher

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
)

// TestStood checks that gangrun reports a time in which gangrun itself stood still, and the possible consequences. If
// the whole gang is on this machine, there are no consequences, so there must be no report.
func TestStood(t *testing.T) {
	for name, c := range map[string]struct {
		local bool
		gaps  []time.Duration
		want  []string // texts that the note must have
		notes int
	}{
		"in order": {gaps: []time.Duration{agents.SuspectEvery, agents.SuspectEvery, 2 * time.Second}},
		"stopped":  {gaps: []time.Duration{agents.SuspectEvery, 12 * time.Second, agents.SuspectEvery}, want: []string{"stood still for 12s"}, notes: 1},
		"for long": {gaps: []time.Duration{time.Minute}, want: []string{"stood still for 1m0s", "without contact for 20s", "--orphan-grace"}, notes: 1},
		"here":     {local: true, gaps: []time.Duration{time.Minute}},
	} {
		var told []job.Event
		g := &running{silence: silence{orphanGrace: 20 * time.Second}, emitter: newEmitter(func(e job.Event) { told = append(told, e) }),
			nodes: []*node{{agent: &agents.Agent{Host: "h1", Link: agents.Link{Local: true}}}, {agent: &agents.Agent{Host: "h2", Link: agents.Link{Local: c.local}}}}}
		at := time.Now()
		g.noteGap(at)
		for _, gap := range c.gaps {
			at = at.Add(gap)
			g.noteGap(at)
		}
		g.emitter.close()
		if len(told) != c.notes || slices.ContainsFunc(c.want, func(w string) bool { return !strings.Contains(told[0].Text, w) }) {
			t.Errorf("%s: told %+v", name, told)
		}
	}
}
