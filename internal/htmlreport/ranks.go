package htmlreport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/vitals"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// ranks is the table of the ranks of the latest attempt.
type ranks struct {
	Attempt int
	Rows    []rankRow
	Folded  bool
	Left    int // number of ranks that are left out
	// Vitals and GPUs are true if any rank has some.
	Vitals, GPUs bool
}

type rankRow struct {
	Rank            int
	Host, GPUs      string
	Exit, Tone      string
	Step, Loss      string
	CPU, RSS, Speed string
	Odd             string
}

func (r *Recorder) rankTable(report runreport.Report, v *vitals.Vitals) ranks {
	out := ranks{Attempt: r.current}
	exits := map[int]job.Exit{}
	if a := report.Last(); a != nil && a.Number == r.current {
		for _, x := range a.Exits {
			exits[x.Rank] = x
		}
	}
	if v != nil && v.Attempt != r.current {
		v = nil
	}
	labels := labelsOf(r.place.Hosts)
	for _, p := range r.place.Ranks[:min(len(r.place.Ranks), most)] {
		row := rankRow{Rank: p.Rank, Host: p.Host}
		var gpus []string
		for _, d := range p.Devices {
			gpus = append(gpus, labels.of(p.Host, d))
		}
		row.GPUs = text.Some(gpus, 8)
		out.GPUs = out.GPUs || len(gpus) > 0
		if x, ok := exits[p.Rank]; ok {
			row.Exit, row.Tone = exitWords(x), exitTone(x)
		}
		if l, ok := r.ranks[p.Rank]; ok && l.step >= 0 {
			row.Step, row.Loss = fmt.Sprint(l.step), lossText(l.loss, l.lossIs)
		}
		if life := v.Of(p.Rank); life != nil {
			out.Vitals = true
			row.vitals(*life)
		}
		out.Rows = append(out.Rows, row)
	}
	out.Left = len(r.place.Ranks) - len(out.Rows)
	out.Folded = len(out.Rows) > many
	return out
}

// vitals adds what is known about the process of the rank.
func (row *rankRow) vitals(v vitals.Rank) {
	if v.CPU != nil {
		row.CPU = fmt.Sprintf("%.0f %%", *v.CPU)
	}
	row.RSS = text.Bytes(v.RSS)
	if v.Rate > 0 {
		row.Speed = number(v.Rate)
	}
	var odd []string
	for _, o := range v.Odd {
		odd = append(odd, string(o))
	}
	row.Odd = strings.Join(odd, " ")
}

func exitTone(x job.Exit) string {
	switch {
	case x.Good():
		return "good"
	case x.Stopped:
		return "mild"
	}
	return "bad"
}

// Failed returns the rows of a folded table whose ranks failed by themselves. It returns nil if there are none.
func (r ranks) Failed() *ranks {
	if !r.Folded {
		return nil
	}
	bad := r
	bad.Rows = slices.DeleteFunc(slices.Clone(r.Rows), func(row rankRow) bool { return row.Tone != "bad" })
	bad.Rows = bad.Rows[:min(len(bad.Rows), many)]
	if len(bad.Rows) == 0 {
		return nil
	}
	return &bad
}
