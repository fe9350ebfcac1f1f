package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/compare"
)

// Matrix is a table of the facts of a gang's hosts.
type Matrix = compare.Matrix

// marked returns a Cell. odd is true if its value is odd.
func marked(text string, odd bool) compare.Cell { return compare.Cell{Text: text, Odd: odd} }

// columns has a function for each column, which returns the cells of all hosts.
var columns = []struct {
	name string
	fill func([]job.Facts) []compare.Cell
}{
	{"clock", clockCells},
	{"connections", reachCells},
	{"workdir", func(facts []job.Facts) []compare.Cell {
		return cells(facts, func(f job.Facts) compare.Cell { return pathCell(f.Workdir) })
	}},
	{"program", func(facts []job.Facts) []compare.Cell {
		return same(facts, func(f job.Facts) (string, bool) {
			if c := pathCell(f.Program.PathFact); c.Odd {
				return c.Text, true
			}
			return short(f.Program.SHA256), len(f.Program.Missing) > 0 || !f.Program.Executable
		})
	}},
	{"script", func(facts []job.Facts) []compare.Cell {
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
	{"driver", func(facts []job.Facts) []compare.Cell {
		if !slices.ContainsFunc(facts, func(f job.Facts) bool { return driver(f) != "none" }) {
			return make([]compare.Cell, len(facts))
		}
		return same(facts, func(f job.Facts) (string, bool) { return driver(f), false })
	}},
	{"mpi", func(facts []job.Facts) []compare.Cell {
		return same(facts, func(f job.Facts) (string, bool) {
			if f.OpenMPI != nil && f.OpenMPI.Version != "" {
				return f.OpenMPI.Version, false
			}
			return libraryVersion(f.Program.Library), false
		})
	}},
	{"libraries", func(facts []job.Facts) []compare.Cell {
		return versionCells(facts, job.VersionLibrary, job.VersionMPI)
	}},
	{"packages", func(facts []job.Facts) []compare.Cell { return versionCells(facts, job.VersionPython) }},
	{"inputs", func(facts []job.Facts) []compare.Cell {
		return cells(facts, func(f job.Facts) compare.Cell {
			if len(f.Inputs) == 0 {
				return compare.Cell{}
			}
			bad := 0
			for _, in := range f.Inputs {
				if in.Kind != job.ErrorNone || in.Error != "" {
					bad++
				}
			}
			return marked(fmt.Sprintf("%d/%d", len(f.Inputs)-bad, len(f.Inputs)), bad > 0)
		})
	}},
	{"checkpoints", sharedCells},
}

// Compare returns the Matrix of facts. It leaves out columns that do not matter for the job,
// and columns in which no host has a value.
func Compare(spec job.Spec, facts []job.Facts) Matrix {
	m := Matrix{Columns: []string{}, Rows: make([]compare.Row, len(facts))}
	for i, f := range facts {
		m.Rows[i] = compare.Row{Host: f.Host, Cells: []compare.Cell{}, Reach: f.Reach}
	}
	for _, c := range columns {
		filled := c.fill(facts)
		if !slices.ContainsFunc(filled, func(c compare.Cell) bool { return c.Text != "" }) || c.name == "driver" && spec.GPUs == 0 {
			continue
		}
		m.Columns = append(m.Columns, c.name)
		for i := range m.Rows {
			m.Rows[i].Cells = append(m.Rows[i].Cells, filled[i])
		}
	}
	return m
}

// cells returns a cell for each host. fill looks at one host at a time.
func cells(facts []job.Facts, fill func(job.Facts) compare.Cell) []compare.Cell {
	out := make([]compare.Cell, len(facts))
	for i, f := range facts {
		out[i] = fill(f)
	}
	return out
}

// same returns cells whose values should be the same on every host. value may also report that a value is wrong
// in itself.
func same(facts []job.Facts, value func(job.Facts) (text string, wrong bool)) []compare.Cell {
	out, values := make([]compare.Cell, len(facts)), make([]string, len(facts))
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

func pathCell(f job.PathFact) compare.Cell {
	switch {
	case f.Kind != job.ErrorNone:
		return marked(string(f.Kind), true)
	case f.Error != "":
		return marked(string(job.ErrorIO), true)
	}
	return compare.Cell{Text: "ok"}
}

// short returns the beginning of a hash.
func short(hash string) string { return hash[:min(len(hash), 8)] }

// driver returns the version of the host's GPU driver.
func driver(f job.Facts) string {
	for _, v := range f.Versions {
		if v.Kind == job.VersionDriver {
			return v.Version
		}
	}
	return "none"
}

func clockCells(facts []job.Facts) []compare.Cell {
	if !slices.ContainsFunc(facts, func(f job.Facts) bool { return f.Skew != 0 }) {
		return make([]compare.Cell, len(facts))
	}
	odd, _ := compare.OddClocks(facts)
	if n := compare.Count(odd); n > 0 && 2*n >= len(odd) {
		for i := range odd {
			odd[i] = true
		}
	}
	out := make([]compare.Cell, len(facts))
	for i, f := range facts {
		out[i] = marked(fmt.Sprintf("%+.2f s", f.Skew.Seconds()), odd[i])
		if f.Skew.Abs() <= f.SkewWithin { // there may be no difference
			out[i].Text = fmt.Sprintf("±%.2f s", f.SkewWithin.Seconds())
		}
	}
	return out
}

// reachCells shows how many other hosts a host reaches, the longest time that this takes, and how many hosts
// reach it.
func reachCells(facts []job.Facts) []compare.Cell {
	out := make([]compare.Cell, len(facts))
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
			out[i].Text += " in " + compare.Millis(longest)
		}
		out[i].Text += fmt.Sprintf(", from %d/%d", from, tried)
	}
	// A host that is cut off is odd, as in the check. The hosts that do not reach it are not.
	for _, h := range reachCheck.Judge(job.Spec{}, facts) {
		for i, f := range facts {
			if slices.Contains(h.Hosts, f.Host) || h.Signature == "reach-one-way" && h.Values["to"] == f.Host {
				out[i].Odd = true
			}
		}
	}
	return out
}

func versionCells(facts []job.Facts, kinds ...job.VersionKind) []compare.Cell {
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
	return cells(facts, func(f job.Facts) compare.Cell {
		switch {
		case odd[f.Host] > 0:
			return marked(fmt.Sprintf("%d of %d differ", odd[f.Host], max(all[f.Host], odd[f.Host])), true)
		case all[f.Host] > 0:
			return compare.Cell{Text: strconv.Itoa(all[f.Host]) + " same"}
		}
		return compare.Cell{}
	})
}

func sharedCells(facts []job.Facts) []compare.Cell {
	groups := compare.Sides(facts)
	odd := compare.OddSides(groups)
	return cells(facts, func(f job.Facts) compare.Cell {
		if f.Check == nil {
			return compare.Cell{}
		}
		if c := pathCell(f.Check.PathFact); c.Odd {
			return c
		}
		at := slices.IndexFunc(groups, func(g []string) bool { return slices.Contains(g, f.Host) })
		switch {
		case at < 0 || len(facts) == 1:
			return compare.Cell{Text: "ok"}
		case len(groups) == 1:
			return compare.Cell{Text: "shared"}
		case len(groups[at]) == 1:
			return marked("its own", true)
		}
		return marked(fmt.Sprintf("shared by %d", len(groups[at])), slices.Contains(odd, f.Host))
	})
}
