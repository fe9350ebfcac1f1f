package htmlreport

import (
	"bytes"
	_ "embed" // the template
	"html/template"
	"io"
	"sync"
	"time"
	"unicode"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/vitals"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Extra has what the page shows in addition to what follows from the events.
type Extra struct {
	// Now is when the page is made. If State is not empty and the run has not ended, State replaces the
	// state of the run.
	Now   time.Time
	State job.State
	// Command is the job's command, quoted for a shell.
	Command string
	// Vitals are the last figures of the ranks; nil if none are known.
	Vitals *vitals.Vitals
	Curves []Curves
	// Notes say what the page lacks.
	Notes []string
}

// Curves has the curves of an attempt, as its logs have them. A curve that is not known has no points.
type Curves struct {
	Attempt                  int
	Loss, Metric, Throughput Curve
}

// Curve is a metric by step.
type Curve struct {
	Name   string // as the job calls it
	Higher bool   // higher values are better
	Points []Point
}

//go:embed page.html
var source string

// parsed is the template. It is parsed when the first page is made.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Parse(source))
})

// page has what the template shows.
type page struct {
	header
	Time     *timeline
	Panels   []panel
	Attempts attempts
	Ranks    ranks
	Place    place
	Findings []finding
	Notes    []string
	Made     string
}

// header is the beginning of the page.
type header struct {
	Run, Name, Command string
	State, Tone        string // Tone is a class of CSS
	Why                string
	Facts              []fact
	Next               []string // what the user can do
}

// fact is a line of the header.
type fact struct{ Name, Text string }

type finding struct {
	Severity, Host, Check, Text, Hint string
	Lines                             []evidence // lines that show the cause of an error
}

// Write writes the page. The error is that of w.
func (r *Recorder) Write(w io.Writer, x Extra) error {
	var b bytes.Buffer
	if err := parsed().Execute(&b, r.page(x)); err != nil {
		return err
	}
	_, err := w.Write(bytes.Map(visible, b.Bytes()))
	return err
}

// visible replaces characters that must not be in a page: control characters, which XML does not allow,
// characters that change the direction of the text, and invisible characters. It also replaces bytes that are
// not UTF-8.
func visible(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// clip shortens a text that does not come from gangrun.
func clip(s string) string { return text.Clip(s, 600) }

// many is the largest number of lines that a list in the page shows without folding. most is the maximum number
// of lines in the table of ranks. mostFindings is the maximum number of findings, and of notes.
const (
	many         = 32
	most         = 1024
	mostFindings = 200
)

func (r *Recorder) page(x Extra) page {
	report := r.Report()
	if x.State != "" && !report.State.Final() {
		report.State = x.State
	}
	p := page{header: header{
		Run: report.Run, Name: clip(report.Name), Command: text.Clip(x.Command, 4000), State: string(report.State), Tone: tone(report.State),
		Why: clip(report.Reason), Facts: r.facts(report, x), Next: next(report),
	}, Made: moment(x.Now)}
	all := r.curves(x)
	p.Time = r.timeline(report, x.Now)
	p.Panels = r.panels(report, all)
	p.Attempts = attemptsOf(report)
	p.Ranks = r.rankTable(report, x.Vitals)
	p.Place = placeOf(r.place)
	for _, f := range report.Preflight {
		shown := finding{Severity: string(f.Severity), Host: f.Host, Check: f.Check, Text: clip(f.Text), Hint: clip(f.Hint)}
		if f.Cause != nil && f.Severity == job.SeverityError && len(p.Findings) < many {
			shown.Lines = causeOf(*f.Cause).Lines
		}
		p.Findings = append(p.Findings, shown)
	}
	if more := len(p.Findings) - mostFindings; more > 0 {
		p.Findings = p.Findings[:mostFindings]
		x.Notes = append(x.Notes, text.Count(more, "more finding")+" of the preflight are not shown")
	}
	for _, note := range append(report.Notes, x.Notes...) {
		p.Notes = append(p.Notes, clip(note))
	}
	if more := len(p.Notes) - mostFindings; more > 0 {
		p.Notes = append(p.Notes[:mostFindings], text.Count(more, "more note")+" not shown")
	}
	return p
}

// tone returns the colour of a state.
func tone(s job.State) string {
	switch s {
	case job.StateSucceeded:
		return "good"
	case job.StateCancelled, job.StateStoppedEarly:
		return "mild"
	case job.StateFailed, job.StatePreflightFailed, job.StateNoPlacement, job.StateLost:
		return "bad"
	}
	return "live"
}

// curves returns the curves of each attempt. If the logs of an attempt have no curve, it takes the loss from
// the journal.
func (r *Recorder) curves(x Extra) (all []Curves) {
	for _, a := range r.folder.Report().Attempts {
		c := Curves{Attempt: a.Number}
		for _, given := range x.Curves {
			if given.Attempt == a.Number {
				c = given
			}
		}
		if p := r.paces[a.Number]; p != nil {
			if len(c.Loss.Points) == 0 && len(c.Metric.Points) == 0 {
				c.Loss = Curve{Name: "loss", Points: p.loss.points}
			}
			if len(c.Throughput.Points) == 0 {
				c.Throughput = Curve{Name: "steps per second", Higher: true, Points: rates(p.steps.points)}
			}
		}
		all = append(all, c)
	}
	return all
}

func next(r runreport.Report) (all []string) {
	add := func(hint string) {
		if hint != "" {
			all = append(all, clip(hint))
		}
	}
	add(r.Hint)
	if a := r.Last(); a != nil && a.Cause != nil && a.Cause.Hint != r.Hint && r.State != job.StateSucceeded {
		add(a.Cause.Hint)
	}
	for _, f := range r.Preflight {
		if f.Severity == job.SeverityError && f.Hint != r.Hint && len(all) < 8 {
			add(f.Hint)
		}
	}
	switch {
	case r.State == job.StateLost:
		add("gangrun attach " + r.Run + " continues the run")
	case r.State.Final() && r.State != job.StateSucceeded && r.MayHelp:
		add("another run of the job may get further than this one")
	}
	return all
}
