package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/compare"
)

// Matrix is a table of the facts of a gang's hosts, and marks the values that are odd. Its JSON
// names are part of the interface.
type Matrix struct {
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Row is one host.
type Row struct {
	Host string `json:"host"`
	// Cells has one Cell for each of the Columns, in their order.
	Cells []Cell `json:"cells"`
	// Reach tells how the host reaches each other host. It is empty if there is only one
	// machine.
	Reach []job.ReachFact `json:"reach,omitempty"`
}

// Cell is one fact of one host.
type Cell struct {
	Text string `json:"text"` // empty if the fact is not known
	// Odd is true if the value differs from that of most hosts, or if it shows a problem.
	Odd bool `json:"odd,omitempty"`
}

// columns fill a cell for each host.
var columns = []struct {
	name string
	fill func([]job.Facts) []Cell
}{
	{"clock", clockCells},
	{"connections", reachCells},
	{"workdir", func(facts []job.Facts) []Cell {
		return cells(facts, func(f job.Facts) Cell { return pathCell(f.Workdir) })
	}},
	{"program", func(facts []job.Facts) []Cell {
		return same(facts, func(f job.Facts) (string, bool) {
			if c := pathCell(f.Program.PathFact); c.Odd {
				return c.Text, true
			}
			return short(f.Program.SHA256), len(f.Program.Missing) > 0 || !f.Program.Executable
		})
	}},
	{"script", func(facts []job.Facts) []Cell {
		return same(facts, func(f job.Facts) (string, bool) {
			if f.Script == nil {
				return "", false
			}
			if c := pathCell(f.Script.PathFact); c.Odd {
				return c.Text, true
			}
			return short(f.Script.SHA256), false
		})
	}},
	{"driver", func(facts []job.Facts) []Cell {
		if !slices.ContainsFunc(facts, func(f job.Facts) bool { return driver(f) != "none" }) {
			return make([]Cell, len(facts))
		}
		return same(facts, func(f job.Facts) (string, bool) { return driver(f), false })
	}},
	{"mpi", func(facts []job.Facts) []Cell {
		return same(facts, func(f job.Facts) (string, bool) {
			if f.OpenMPI != nil && f.OpenMPI.Version != "" {
				return f.OpenMPI.Version, false
			}
			return libraryVersion(f.Program.Library), false
		})
	}},
	{"libraries", func(facts []job.Facts) []Cell {
		return versionCells(facts, job.VersionLibrary, job.VersionMPI)
	}},
	{"packages", func(facts []job.Facts) []Cell { return versionCells(facts, job.VersionPython) }},
	{"inputs", func(facts []job.Facts) []Cell {
		return cells(facts, func(f job.Facts) Cell {
			if len(f.Inputs) == 0 {
				return Cell{}
			}
			bad := 0
			for _, in := range f.Inputs {
				if in.Kind != job.ErrorNone || in.Error != "" {
					bad++
				}
			}
			return Cell{fmt.Sprintf("%d/%d", len(f.Inputs)-bad, len(f.Inputs)), bad > 0}
		})
	}},
	{"checkpoints", sharedCells},
}

// Compare returns the Matrix of facts. It leaves out columns that do not matter for the job,
// and columns in which no host has a value.
func Compare(spec job.Spec, facts []job.Facts) Matrix {
	m := Matrix{Columns: []string{}, Rows: make([]Row, len(facts))}
	for i, f := range facts {
		m.Rows[i] = Row{Host: f.Host, Cells: []Cell{}, Reach: f.Reach}
	}
	for _, c := range columns {
		filled := c.fill(facts)
		if !slices.ContainsFunc(filled, func(c Cell) bool { return c.Text != "" }) || c.name == "driver" && spec.GPUs == 0 {
			continue
		}
		m.Columns = append(m.Columns, c.name)
		for i := range m.Rows {
			m.Rows[i].Cells = append(m.Rows[i].Cells, filled[i])
		}
	}
	return m
}

// Odd reports whether any value is odd.
func (m Matrix) Odd() bool { return slices.ContainsFunc(m.Rows, Row.odd) }

func (r Row) odd() bool { return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Odd }) }

// Lines returns the matrix as text, with a ! after each odd value. If all is true, Lines shows
// every column and host, and how long each host takes to reach each other host. If all is
// false, it shows only the columns and hosts with odd values, and one line for all other hosts.
func (m Matrix) Lines(all bool) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var shown []int // columns
	for i := range m.Columns {
		if all || slices.ContainsFunc(m.Rows, func(r Row) bool { return r.Cells[i].Odd }) {
			shown = append(shown, i)
		}
	}
	head := []string{"host"}
	for _, i := range shown {
		head = append(head, m.Columns[i])
	}
	write := func(words []string) { fmt.Fprintln(w, strings.Join(words, "\t")) }
	write(head)
	var rest []Row
	for _, r := range m.Rows {
		if !all && !r.odd() {
			rest = append(rest, r)
			continue
		}
		words := []string{r.Host}
		for _, i := range shown {
			words = append(words, r.Cells[i].mark())
		}
		write(words)
	}
	if len(rest) > 0 {
		words := []string{"others: " + strconv.Itoa(len(rest))}
		if len(rest) == 1 {
			words[0] = rest[0].Host
		}
		for _, i := range shown {
			text := rest[0].Cells[i].mark()
			if slices.ContainsFunc(rest, func(r Row) bool { return r.Cells[i].mark() != text }) {
				text = "well"
			}
			words = append(words, text)
		}
		write(words)
	}
	if all {
		m.reach(write)
	}
	_ = w.Flush() // a strings.Builder takes everything
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// reach writes how long each host takes to reach each other.
func (m Matrix) reach(write func([]string)) {
	if !slices.ContainsFunc(m.Rows, func(r Row) bool { return len(r.Reach) > 0 }) {
		return
	}
	head := []string{"from, to"}
	for _, r := range m.Rows {
		head = append(head, r.Host)
	}
	write(nil)
	write(head)
	for _, r := range m.Rows {
		words := []string{r.Host}
		for _, to := range m.Rows {
			text := "?"
			if to.Host == r.Host {
				text = "-"
			}
			for _, f := range r.Reach {
				switch {
				case f.To != to.Host:
				case f.Error != "":
					text = "fails!"
				default:
					text = millis(f.Time)
				}
			}
			words = append(words, text)
		}
		write(words)
	}
}

func (c Cell) mark() string {
	switch {
	case c.Odd:
		return c.Text + "!"
	case c.Text == "":
		return "-"
	}
	return c.Text
}

// cells fills a cell for each host by itself.
func cells(facts []job.Facts, fill func(job.Facts) Cell) []Cell {
	out := make([]Cell, len(facts))
	for i, f := range facts {
		out[i] = fill(f)
	}
	return out
}

// same fills cells with what is to be the same on every host; wrong says that
// something is wrong with it anyway.
func same(facts []job.Facts, value func(job.Facts) (text string, wrong bool)) []Cell {
	out, values := make([]Cell, len(facts)), make([]string, len(facts))
	for i, f := range facts {
		out[i].Text, out[i].Odd = value(f)
		if !out[i].Odd {
			values[i] = out[i].Text
		}
	}
	odd, _ := compare.Odd(values)
	for i := range out {
		out[i].Odd = out[i].Odd || odd[i]
	}
	return out
}

func pathCell(f job.PathFact) Cell {
	switch {
	case f.Kind != job.ErrorNone:
		return Cell{string(f.Kind), true}
	case f.Error != "":
		return Cell{string(job.ErrorIO), true}
	}
	return Cell{Text: "ok"}
}

// short is the beginning of a hash.
func short(hash string) string { return hash[:min(len(hash), 8)] }

// driver is the version of the host's driver.
func driver(f job.Facts) string {
	for _, v := range f.Versions {
		if v.Kind == job.VersionDriver {
			return v.Version
		}
	}
	return "none"
}

// millis is a time between hosts.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
}

func clockCells(facts []job.Facts) []Cell {
	if !slices.ContainsFunc(facts, func(f job.Facts) bool { return f.Skew != 0 }) {
		return make([]Cell, len(facts))
	}
	odd, _ := compare.OddClocks(facts)
	if n := compare.Count(odd); n > 0 && 2*n >= len(odd) {
		for i := range odd {
			odd[i] = true
		}
	}
	out := make([]Cell, len(facts))
	for i, f := range facts {
		out[i] = Cell{fmt.Sprintf("%+.2f s", f.Skew.Seconds()), odd[i]}
		if f.Skew.Abs() <= f.SkewWithin { // it may be none
			out[i].Text = fmt.Sprintf("±%.2f s", f.SkewWithin.Seconds())
		}
	}
	return out
}

// reachCells shows how many of the others a host reaches, the longest time that
// takes, and how many reach it.
func reachCells(facts []job.Facts) []Cell {
	out := make([]Cell, len(facts))
	for i, f := range facts {
		if len(f.Reach) == 0 {
			continue
		}
		to, longest := 0, time.Duration(0)
		for _, r := range f.Reach {
			if r.Error == "" {
				to, longest = to+1, max(longest, r.Time)
			}
		}
		from, tried := 0, 0
		for _, g := range facts {
			for _, r := range g.Reach {
				if r.To == f.Host {
					tried++
					if r.Error == "" {
						from++
					}
				}
			}
		}
		out[i].Text = fmt.Sprintf("to %d/%d", to, len(f.Reach))
		if to > 0 {
			out[i].Text += " in " + millis(longest)
		}
		out[i].Text += fmt.Sprintf(", from %d/%d", from, tried)
	}
	// As the check reports it: for a host that is cut off, not for all hosts that miss it.
	for _, h := range reachCheck.Judge(job.Spec{}, facts) {
		for i, f := range facts {
			if slices.Contains(h.Hosts, f.Host) || h.Signature == "reach-one-way" && h.Values["to"] == f.Host {
				out[i].Odd = true
			}
		}
	}
	return out
}

func versionCells(facts []job.Facts, kinds ...job.VersionKind) []Cell {
	all, odd := map[string]int{}, map[string]int{} // by host
	for _, f := range facts {
		for _, v := range f.Versions {
			if slices.Contains(kinds, v.Kind) {
				all[f.Host]++
			}
		}
	}
	for _, d := range compare.Differences(facts) {
		for _, h := range d.Hosts {
			if slices.Contains(kinds, d.Kind) {
				odd[h]++
			}
		}
	}
	return cells(facts, func(f job.Facts) Cell {
		switch {
		case odd[f.Host] > 0:
			return Cell{fmt.Sprintf("%d of %d differ", odd[f.Host], max(all[f.Host], odd[f.Host])), true}
		case all[f.Host] > 0:
			return Cell{Text: strconv.Itoa(all[f.Host]) + " same"}
		}
		return Cell{}
	})
}

func sharedCells(facts []job.Facts) []Cell {
	groups := compare.Sides(facts)
	odd := compare.OddSides(groups)
	return cells(facts, func(f job.Facts) Cell {
		if f.Check == nil {
			return Cell{}
		}
		if c := pathCell(f.Check.PathFact); c.Odd {
			return c
		}
		at := slices.IndexFunc(groups, func(g []string) bool { return slices.Contains(g, f.Host) })
		switch {
		case at < 0 || len(facts) == 1:
			return Cell{Text: "ok"}
		case len(groups) == 1:
			return Cell{Text: "shared"}
		case len(groups[at]) == 1:
			return Cell{"its own", true}
		}
		return Cell{fmt.Sprintf("shared by %d", len(groups[at])), slices.Contains(odd, f.Host)}
	})
}
