package runreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// Trial is the state of the preflight's trial.
type Trial struct {
	// Text is what the trial reported last.
	Text string `json:"text"`
	// Steps has the rounds of the trial, in order: one for each time when gangrun started ranks. It is empty if
	// gangrun remembered that a trial of the same job had passed.
	Steps []TrialStep `json:"steps"`
}

// TrialStep is one round of a trial. Ended is null while these ranks run.
type TrialStep struct {
	Ranks   int        `json:"ranks"`
	Hosts   []string   `json:"hosts"`
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`
	// Alive is the number of ranks that have started and not ended.
	Alive int    `json:"alive"`
	Logs  string `json:"logs"` // directory of the ranks' log files
}

// String returns the number of ranks and their hosts, as in "2 ranks on h1, h2".
func (s TrialStep) String() string {
	hosts := s.Hosts
	if more := len(hosts) - maxShown; more > 0 {
		hosts = append(slices.Clone(hosts[:maxShown]), fmt.Sprintf("%d more", more))
	}
	return text.Count(s.Ranks, "rank") + " on " + strings.Join(hosts, ", ")
}

// trialFolder computes a Trial from the events of a trial.
type trialFolder struct {
	trial *Trial       // nil until the trial has reported something
	alive map[int]bool // ranks of the latest step that have started and not ended
}

// add adds one event of attempt 0.
func (f *trialFolder) add(e job.Event) {
	switch {
	case e.Kind == job.KindTrial:
		f.say(e)
	case f.trial == nil || len(f.trial.Steps) == 0:
	case e.Kind == job.KindStarted:
		f.alive[e.Rank] = true
	case e.Kind == job.KindExit && e.Exit != nil:
		delete(f.alive, e.Exit.Rank)
	}
}

// say adds an event in which the trial reports that a step begins, or how the trial goes. A step ends at the
// first such event after the end of its ranks.
func (f *trialFolder) say(e job.Event) {
	if f.trial == nil {
		f.trial = &Trial{}
	}
	f.trial.Text = e.Text
	if e.Placement == nil {
		if len(f.alive) == 0 {
			f.end(e.Time)
		}
		return
	}
	f.end(e.Time)
	f.alive = map[int]bool{}
	s := TrialStep{Ranks: len(e.Placement.Ranks), Started: when(e.Time), Logs: e.LogDir}
	for _, h := range e.Placement.Hosts {
		s.Hosts = append(s.Hosts, h.Name)
	}
	f.trial.Steps = append(f.trial.Steps, s)
}

// end ends the latest step, if it has not ended.
func (f *trialFolder) end(t time.Time) {
	if s := f.step(); s != nil && s.Ended == nil {
		s.Ended = when(t)
		clear(f.alive)
	}
}

// step returns the latest step, or nil if there was none.
func (f *trialFolder) step() *TrialStep {
	if f.trial == nil || len(f.trial.Steps) == 0 {
		return nil
	}
	return &f.trial.Steps[len(f.trial.Steps)-1]
}

// report returns the trial so far. Later events do not change the returned Trial.
func (f *trialFolder) report() *Trial {
	if f.trial == nil {
		return nil
	}
	t := Trial{Text: f.trial.Text, Steps: list(f.trial.Steps)}
	for i := range t.Steps {
		t.Steps[i].Hosts = list(t.Steps[i].Hosts)
	}
	if n := len(t.Steps); n > 0 {
		t.Steps[n-1].Alive = len(f.alive)
	}
	return &t
}

// checking returns what the preflight is doing.
func (t *Trial) checking() string {
	if t == nil || len(t.Steps) == 0 {
		return "static checks"
	}
	return "trial of " + t.Steps[len(t.Steps)-1].String()
}

// summarizeTrial adds lines about what the preflight is doing. If the run had no attempt, it adds what the
// preflight did, because the logs of the trial's ranks are then the only logs.
func summarizeTrial(line liner, r Report) {
	if len(r.Attempts) > 0 {
		return
	}
	if r.State == job.StatePreflight && r.Trial == nil && r.Since != nil {
		line("preflight", "%s, since %s", r.Trial.checking(), clock(*r.Since))
	}
	if r.Trial == nil {
		return
	}
	for _, s := range r.Trial.Steps {
		what := s.String()
		if s.Started != nil {
			what += ", started " + clock(*s.Started)
		}
		if s.Ended == nil {
			what += fmt.Sprintf(", %d of %s up", s.Alive, text.Count(s.Ranks, "rank"))
		} else if s.Started != nil {
			what += fmt.Sprintf(", ended %s after %s", clock(*s.Ended), short(s.Ended.Sub(*s.Started)))
		}
		line("trial", "%s", what)
		if s.Logs != "" {
			line("  logs", "%s", s.Logs)
		}
	}
	if r.State == job.StatePreflight {
		line("", "%s", r.Trial.Text)
	}
}
