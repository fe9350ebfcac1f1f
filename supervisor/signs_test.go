package supervisor

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSignsAreEvidence: the signs of ill health of the blamed host come first in the evidence. The report has
// all signs. A sign that agents report again counts as known.
func TestSignsAreEvidence(t *testing.T) {
	failed := exited(1, 7)
	failed.Host = "h2"
	w := newWorld(t, dies(failed, job.CPUOOM, 3))
	w.spec.Retries = 0
	diagnose := w.supervisor.Diagnose
	w.supervisor.Diagnose = func(e job.Evidence) job.Cause {
		c := diagnose(e)
		c.Host, c.Evidence = "h2", []job.Line{{Text: "decisive"}}
		return c
	}
	health := func(host, text string, severity job.Severity) job.Event {
		return job.Event{Kind: job.KindHealth, Host: host, Text: text, Hint: "do it", Health: &job.Health{Sign: job.HealthMemory, Severity: severity}}
	}
	events := []job.Event{
		health("h1", "another host", job.SeverityWarning), health("h2", "a note", job.SeverityNote), health("h2", "memory", job.SeverityWarning),
		{Kind: job.KindGPU, Host: "h2", Text: "XID 79", GPU: &job.GPU{Sign: job.GPUXID, XID: 79}},
		{Kind: job.KindGPU, Host: "h2", Text: "shared", GPU: &job.GPU{Sign: job.GPUShared}},
	}
	for i := range 4 {
		events = append(events, health("h2", fmt.Sprint("disk ", i), job.SeverityError))
	}
	events = append(events, health("h1", "disk 3", job.SeverityError))
	launch := w.supervisor.Launcher
	w.supervisor.Launcher = launcherFunc(func(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
		outcome, err := launch.Run(ctx, a, emit)
		for _, e := range events {
			emit(e)
		}
		return outcome, err
	})
	w.run(t)
	var texts []string
	for _, l := range w.report.Cause().Evidence {
		if l.Text != "decisive" && (l.Source != job.SourceAgent || l.Host != "h2" || l.Rank != -1 || l.Time.IsZero()) {
			t.Errorf("%+v", l)
		}
		texts = append(texts, l.Text)
	}
	if want := []string{"XID 79", "disk 0", "disk 1", "disk 2", "disk 3", "decisive"}; !slices.Equal(texts, want) {
		t.Errorf("evidence %q, want %q", texts, want)
	}
	if signs := w.report.Last().Signs; len(signs) != len(events) || signs[0].Host != "h1" || signs[0].Text != "another host" || signs[0].Hint != "do it" || signs[3].GPU.XID != 79 {
		t.Errorf("signs %+v", signs)
	}
	// If two hosts report the same about a file system that they share, there is one note.
	notes := []string{"on h1: another host", "on h2: a note", "on h2: memory", "on h2: XID 79", "on h2: shared", "on h2: disk 0", "on h2: disk 1", "on h2: disk 2", "on h2: disk 3"}
	if !slices.Equal(w.report.Notes, notes) {
		t.Errorf("notes %q, want %q", w.report.Notes, notes)
	}
	again := adopted{told: map[string]bool{}}
	e := health("h2", "memory", job.SeverityWarning)
	if again.add(e); !again.knows(e) {
		t.Error("what an agent tells again is not known")
	}
	if e.Text = "more"; again.knows(e) {
		t.Error("what it has not told is known")
	}
}
