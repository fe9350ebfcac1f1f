package logtext

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// gridTag matches a tag with two numbers, as in "n1.2 ", "[1,3] ", "node0/1: " and "[dp1 tp0] ".
var gridTag = textmatch.New(`^ {0,4}([\[(<]?)([A-Za-z]{0,8})[_-]?(\d{1,4})([./:, -]{1,2})([A-Za-z]{0,8})[_-]?(\d{1,4})([\])>]?:?|)(?: ?\|)?(?:\s|$)`)

// place has the two numbers of such a tag: those of a host and of a process on the host, or of two dimensions.
type place struct{ row, column int }

// gridLines is how many lines each process must have.
const gridLines = 2

// gridded sets the ranks of lines with tags of two numbers that form a whole grid, and removes the tags. It reports
// whether it found such a grid. Ranks are counted row by row; if the first number is that of tensor parallelism, column
// by column.
func gridded(lines []job.Line) bool {
	shapes, last := map[string]map[place]int{}, map[string]place{}
	back := map[string]int{} // how often the first number is lower than in the line before
	shape := func(m []string) string { return strings.Join([]string{m[1], m[2], m[4], m[5], m[7]}, "#") }
	for _, l := range lines {
		m := gridTag.FindStringSubmatch(l.Text)
		if m == nil || m[1]+m[2]+m[5] == "" {
			continue
		}
		s, p := shape(m), place{Number(m[3]), Number(m[6])}
		if shapes[s] == nil {
			shapes[s] = map[place]int{}
		}
		if q, ok := last[s]; ok && p.row < q.row {
			back[s]++
		}
		shapes[s][p]++
		last[s] = p
	}
	best, most := "", 0
	for s, places := range shapes {
		n := 0
		for _, k := range places {
			n += k
		}
		if back[s] >= gridLines && whole(places) && (n > most || n == most && s < best) {
			best, most = s, n
		}
	}
	if best == "" || most*2 < len(lines) {
		return false
	}
	columns, rows, tensor := 0, 0, strings.HasPrefix(strings.ToLower(strings.Split(best, "#")[1]), "tp")
	low := place{1 << 30, 1 << 30}
	for p := range shapes[best] {
		low = place{min(low.row, p.row), min(low.column, p.column)}
	}
	for p := range shapes[best] {
		rows, columns = max(rows, p.row-low.row+1), max(columns, p.column-low.column+1)
	}
	for i, l := range lines {
		m := gridTag.FindStringSubmatch(l.Text)
		if m == nil || shape(m) != best {
			continue
		}
		row, column := Number(m[3])-low.row, Number(m[6])-low.column
		lines[i].Rank = row*columns + column
		if tensor {
			lines[i].Rank = column*rows + row
		}
		lines[i].Text = l.Text[len(m[0]):]
	}
	return true
}

// whole reports whether places fill a grid. The grid must have at least two rows and two columns, both numbered without
// a gap from 0 or 1.
func whole(places map[place]int) bool {
	var rows, columns []int
	for p, n := range places {
		if n < gridLines {
			return false
		}
		rows, columns = append(rows, p.row), append(columns, p.column)
	}
	slices.Sort(rows)
	slices.Sort(columns)
	rows, columns = slices.Compact(rows), slices.Compact(columns)
	from := func(all []int) bool { return all[0] <= 1 && all[len(all)-1]-all[0]+1 == len(all) }
	return len(rows) > 1 && len(columns) > 1 && from(rows) && from(columns) && len(rows)*len(columns) == len(places)
}
