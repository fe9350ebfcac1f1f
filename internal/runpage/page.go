// Package runpage reads the journal and the logs of a run. From these it makes the page of the run, report.html,
// and a plot of the loss for a terminal.
package runpage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/curveview"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/htmlreport"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/runlogs"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/internal/vitals"
)

// Page is the page of a run.
type Page struct {
	run      home.Run
	recorder htmlreport.Recorder
	curves   []htmlreport.Curves
	last     *curveview.Curve // the loss in the logs of the attempt lastOf; nil if none was read
	lastOf   int
	attempt  int // the latest
	notes    []string
}

// New returns a page of a run without events.
func New(run home.Run) *Page { return &Page{run: run} }

// Read makes the page of a run from the journal and from the logs of the latest attempts. When hurried has
// ended, Read reads no further logs. The page then lacks curves, and says so. When ctx has ended, Read does not
// read the journal either, and returns an error.
func Read(ctx, hurried context.Context, run home.Run) (*Page, error) {
	p := New(run)
	in, err := safefile.Open(run.JournalPath())
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	defer in.Close()
	skipped, err := journal.Scan(in, func(e job.Event) bool {
		p.Add(e)
		return ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	if skipped > 0 {
		p.notes = append(p.notes, fmt.Sprintf("this report has gaps: lines of the journal that cannot be read: %d", skipped))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(hurried, cancel)()
	if hurried.Err() != nil {
		cancel()
	}
	p.ReadCurves(ctx, mostAttempts, mostBytes)
	return p, nil
}

// Add adds the next event of the run.
func (p *Page) Add(e job.Event) {
	p.recorder.Add(e)
	p.attempt = max(p.attempt, e.Attempt)
}

// mostAttempts is the number of attempts whose logs are read. mostBytes is the maximum size of the logs of one
// attempt. For other attempts, the page has the losses of the journal.
const (
	mostAttempts = 8
	mostBytes    = 512 << 20
)

// ReadCurves reads the curves of the latest attempts from their logs. attempts is how many attempts it reads.
// It skips an attempt whose logs have more than limit bytes, so that the curves of that attempt come from the
// journal.
func (p *Page) ReadCurves(ctx context.Context, attempts int, limit int64) {
	for n := max(1, p.attempt-attempts+1); n <= p.attempt; n++ {
		paths, size := p.logs(n)
		if len(paths) == 0 {
			continue
		}
		if size > limit {
			p.notes = append(p.notes, fmt.Sprintf("the logs of attempt %d are too large: its curves come from the journal, which has about one value a second", n))
			continue
		}
		late := fmt.Sprintf("there was no time to read all logs of attempt %d: its curves may be cut off", n)
		if ctx.Err() != nil {
			p.notes = append(p.notes, late)
			continue
		}
		r, err := curveview.Read(ctx, paths, curveview.Options{GPUs: 1})
		if ctx.Err() != nil {
			p.notes = append(p.notes, late)
		}
		if err != nil || ctx.Err() != nil && p.journalGoesOn(n, r) {
			continue // there are no metrics, or only the first ones were read
		}
		for i := range r.History {
			r.History[i].Saves = nil // the number of GPUs of the gang is not known here
		}
		c := htmlreport.Curves{Attempt: n, Loss: curve(r.Train), Throughput: curve(r.Throughput)}
		if r.Metric != r.Train {
			c.Metric = curve(r.Metric)
		}
		p.curves = append(p.curves, c)
		p.last, p.lastOf = r.Train, n
		if r.Train == nil {
			p.last = r.Metric
		}
	}
}

// journalGoesOn reports whether the journal has losses of later steps of an attempt than its logs, as far as
// these were read.
func (p *Page) journalGoesOn(attempt int, r curveview.Report) bool {
	known := p.recorder.Loss(attempt)
	return len(known) > 0 && (r.Train == nil || r.Train.Last == nil || known[len(known)-1].X > float64(r.Train.Last.Step))
}

// logs returns the log files of an attempt that may have its curves. These are the files of the rank that has
// reported a loss. If there is no such rank, they are the files of the first and the last rank.
func (p *Page) logs(attempt int) (paths []string, size int64) {
	files, err := runlogs.Query{Rank: -1, Attempt: strconv.Itoa(attempt)}.Files(home.Summary{Run: p.run.ID, Dir: p.run.Dir})
	if err != nil {
		return nil, 0
	}
	wanted := map[int]bool{0: true}
	if rank := p.recorder.LossRank(attempt); rank >= 0 {
		wanted[rank] = true
	} else if len(files) > 0 {
		wanted[files[len(files)-1].Rank] = true
	}
	for _, f := range files {
		if wanted[f.Rank] && f.Bytes > 0 {
			paths = append(paths, f.Path)
			size += f.Bytes
		}
	}
	return paths, size
}

func curve(c *curveview.Curve) (out htmlreport.Curve) {
	if c == nil {
		return out
	}
	out.Name, out.Higher = c.Series, c.Higher
	for step, value := range c.Points {
		out.Points = append(out.Points, htmlreport.Point{X: float64(step), Y: value})
	}
	return out
}

// Now has what is true of the run at the moment. If State is not empty, and the run has not ended, State
// replaces the state of the run, for example because its controller is gone. Vitals may be nil.
type Now struct {
	Time   time.Time
	State  job.State
	Vitals *vitals.Vitals
}

// Write writes the page.
func (p *Page) Write(w io.Writer, now Now) error {
	return p.recorder.Write(w, htmlreport.Extra{
		Now: now.Time, State: now.State, Vitals: now.Vitals, Curves: p.curves, Notes: p.notes,
		Command: view.ShellCommand(p.recorder.Report().Command),
	})
}

// Save writes the page beside the other records of the run.
func (p *Page) Save(now Now) error {
	var b bytes.Buffer
	if err := p.Write(&b, now); err != nil {
		return err
	}
	return atomicfile.Replace(p.run.PagePath(), b.Bytes(), 0o600)
}

// leastPoints is the smallest number of values for which a plot is drawn.
const leastPoints = 8

// Plot draws the loss of the latest attempt as lines with the given number of columns. rows is the number of
// lines for the values. Plot returns no lines if there is no loss, or if there are only a few values.
func (p *Page) Plot(columns, rows int) []string {
	c := p.last
	if c == nil || p.lastOf != p.attempt {
		points := p.recorder.Loss(p.attempt)
		c = curveview.NewCurve("loss", func(yield func(int64, float64) bool) {
			for _, at := range points {
				if !yield(int64(at.X), at.Y) {
					return
				}
			}
		})
	}
	if c.Values < leastPoints {
		return nil
	}
	drawn := c.Plot(columns, rows, false)
	if drawn == "" {
		return nil
	}
	return strings.Split(drawn, "\n")
}
