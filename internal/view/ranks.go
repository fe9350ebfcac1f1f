package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/vitals"
)

// mostRanks is the maximum number of ranks that a table shows, unless the user asks for all ranks. It shows the
// unusual ones first.
const mostRanks = 24

// Column is a column of a table of ranks.
type Column struct {
	Name string
	// Cell returns what the column shows for a rank. The text has no control characters, and is empty if
	// nothing is known.
	Cell func(RankStatus) string
	// Less orders ranks by this column. If it is nil, ranks are ordered by their numbers.
	Less func(a, b RankStatus) bool
	// Odd is the kind of oddity that this column shows, if it shows any.
	Odd vitals.Oddity
	// Left aligns the column to the left.
	Left bool
	// Order says which columns are left out: those with the highest Order first. A column with the Order 0 is never
	// left out. "gangrun top" leaves out as many as the screen demands. "gangrun status" leaves out those above
	// statusOrder, except POWER.
	Order int
}

// Columns returns the columns of a table of ranks.
func Columns() []Column {
	life := func(get func(vitals.Rank) string) func(RankStatus) string {
		return func(r RankStatus) string {
			if r.Vitals == nil {
				return ""
			}
			return get(*r.Vitals)
		}
	}
	more := func(get func(vitals.Rank) float64) func(a, b RankStatus) bool {
		figure := func(r RankStatus) float64 {
			if r.Vitals == nil {
				return -1
			}
			return get(*r.Vitals)
		}
		return func(a, b RankStatus) bool { return figure(a) > figure(b) }
	}
	return []Column{
		{Name: "RANK", Cell: func(r RankStatus) string { return fmt.Sprint(r.Rank) }},
		{Name: "HOST", Left: true, Order: 1, Cell: func(r RankStatus) string { return text.Printable(r.Host) }, Less: func(a, b RankStatus) bool { return a.Host < b.Host }},
		{Name: "PID", Order: 8, Cell: func(r RankStatus) string { return number(int64(r.process()), r.process() > 0) }},
		{Name: "STATE", Left: true, Order: 1, Cell: RankStatus.Doing, Odd: vitals.OddState},
		{Name: "STEP", Order: 2, Cell: func(r RankStatus) string { return number(r.LastStep(), r.LastStep() >= 0) }, Odd: vitals.OddStep, Less: func(a, b RankStatus) bool { return a.LastStep() < b.LastStep() }},
		{Name: "/MIN", Order: 7, Cell: life(func(r vitals.Rank) string { return rate(r.Rate) })},
		{Name: "LOSS", Order: 6, Cell: RankStatus.loss, Odd: vitals.OddLoss},
		{Name: "IDLE", Order: 5, Cell: life(func(r vitals.Rank) string { return idle(r.Idle) })},
		{Name: "SILENT", Order: 3, Cell: life(func(r vitals.Rank) string { return Short(time.Duration(r.Silent)) }), Odd: vitals.OddMissing, Less: more(func(r vitals.Rank) float64 { return float64(r.Silent) })},
		{Name: "CPU", Order: 3, Cell: life(func(r vitals.Rank) string { return percent(r.CPU) }), Odd: vitals.OddCPU, Less: more(func(r vitals.Rank) float64 {
			if r.CPU == nil {
				return -1
			}
			return *r.CPU
		})},
		{Name: "RSS", Order: 4, Cell: life(func(r vitals.Rank) string { return Size(float64(r.RSS)) }), Odd: vitals.OddMemory, Less: more(func(r vitals.Rank) float64 { return float64(r.RSS) })},
		{Name: "READ/S", Order: 9, Cell: life(func(r vitals.Rank) string { return Size(r.Read) })},
		{Name: "WRITE/S", Order: 9, Cell: life(func(r vitals.Rank) string { return Size(r.Written) })},
		{Name: "PROCS", Order: 10, Cell: life(func(r vitals.Rank) string { return fmt.Sprint(r.Processes) })},
		{Name: "GPU", Order: 3, Odd: vitals.OddGPU, Cell: life(func(r vitals.Rank) string {
			return gpu(r.GPU, func(g job.GPUPulse) string { return fmt.Sprint(g.Utilization, "%") })
		})},
		{Name: "GPUMEM", Order: 11, Cell: life(func(r vitals.Rank) string {
			return gpu(r.GPU, func(g job.GPUPulse) string { return fmt.Sprint(g.Memory, "%") })
		})},
		{Name: "POWER", Order: 11, Cell: life(func(r vitals.Rank) string {
			return gpu(r.GPU, func(g job.GPUPulse) string { return fmt.Sprint(g.Power, "W") })
		})},
	}
}

// Doing says in one word how the rank has ended or, if it has not ended, what its process is doing.
func (r RankStatus) Doing() string {
	if r.Vitals == nil || r.Vitals.State == "" {
		return r.State
	}
	return string(r.Vitals.State)
}

// LastStep returns the last step of the rank, or -1 if the rank has reported none.
func (r RankStatus) LastStep() int64 {
	if !r.behind && r.Vitals != nil && r.Vitals.Progress != nil {
		return r.Vitals.Step()
	}
	return r.Step
}

func (r RankStatus) process() int {
	if r.Vitals != nil && r.Vitals.PID > 0 {
		return r.Vitals.PID
	}
	return r.PID
}

func (r RankStatus) loss() string {
	loss, is := r.Loss, r.LossIs
	if !r.behind && r.Vitals != nil && r.Vitals.Progress != nil && r.Vitals.Progress.HasLoss() {
		loss, is = r.Vitals.Progress.Loss, r.Vitals.Progress.LossIs
	}
	switch {
	case is != "":
		return is
	case loss != nil:
		return fmt.Sprintf("%.4g", *loss)
	}
	return ""
}

// Concern says how much attention the rank needs. It returns 2 if the rank can do nothing, has failed, or is
// out of contact, 1 if it differs from the other ranks in another way, and 0 otherwise.
func (r RankStatus) Concern() int {
	v := cmp.Or(r.Vitals, &vitals.Rank{})
	switch {
	case r.Exit != nil && !r.Exit.Good(), r.Silent != nil, v.Is(vitals.OddState), v.Is(vitals.OddMissing):
		return 2
	case r.LossIs != "", len(v.Odd) > 0:
		return 1
	}
	return 0
}

// oddWords has the words for each respect in which a rank can differ from the others. The state needs no words.
var oddWords = map[vitals.Oddity]string{
	vitals.OddStep: "behind the others", vitals.OddCPU: "CPU unlike the others", vitals.OddMemory: "more memory than the others",
	vitals.OddGPU: "its GPU is idle", vitals.OddMissing: "its host reports nothing",
}

// Remarks returns what is unusual about the rank and not visible in the columns of the table.
func (r RankStatus) Remarks() string {
	var all []string
	if r.LossIs != "" {
		all = append(all, "its loss is "+r.LossIs)
	}
	if r.Silent != nil {
		all = append(all, fmt.Sprintf("%s is silent since %s", text.Printable(r.Host), r.Silent.Local().Format(time.TimeOnly)))
	}
	if r.Vitals != nil {
		for _, odd := range r.Vitals.Odd {
			if words := oddWords[odd]; words != "" {
				all = append(all, words)
			}
		}
	}
	return strings.Join(all, ", ")
}

// statusOrder is the highest Order of the columns that "gangrun status" shows.
const statusOrder = 8

// printRanks prints a table of ranks. If all is false, it prints only the unusual ranks and some others. id is
// the ID of the run.
func printRanks(w io.Writer, id string, ranks []RankStatus, all bool) error {
	shown := ranks
	if !all && len(ranks) > mostRanks {
		shown = worthShowing(ranks)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	columns := slices.DeleteFunc(Columns(), func(c Column) bool {
		return c.Order > statusOrder && c.Name != "POWER" || c.Name != "STEP" && Empty(c, shown)
	})
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	fmt.Fprintln(t, strings.Join(names, "\t"))
	for _, r := range shown {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.Cell(r))
		}
		if words := r.Remarks(); words != "" {
			cells = append(cells, words)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(ranks) - len(shown); more > 0 {
		fmt.Fprintf(w, "and %s: gangrun status --ranks %s shows all\n", text.Count(more, "more rank"), id)
	}
	return nil
}

// worthShowing returns the ranks that are most worth looking at, and ranks with low numbers, in the
// order of their numbers.
func worthShowing(ranks []RankStatus) []RankStatus {
	shown := slices.Clone(ranks)
	slices.SortStableFunc(shown, func(a, b RankStatus) int { return b.Concern() - a.Concern() })
	shown = shown[:min(len(shown), mostRanks)]
	slices.SortFunc(shown, func(a, b RankStatus) int { return a.Rank - b.Rank })
	return shown
}

// Empty reports whether the column c shows nothing for all of the ranks.
func Empty(c Column, ranks []RankStatus) bool {
	return !slices.ContainsFunc(ranks, func(r RankStatus) bool { return c.Cell(r) != "" })
}
