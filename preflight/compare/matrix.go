package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Matrix is a table of the facts of a gang's hosts, in which odd values are marked. Programs may rely on its
// JSON names.
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

// Odd reports whether any value is odd.
func (m Matrix) Odd() bool { return slices.ContainsFunc(m.Rows, Row.odd) }

func (r Row) odd() bool { return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Odd }) }

// Lines returns the matrix as text, with a ! after each odd value. If all is true, Lines shows every column and
// host, and how long each host takes to reach each other host. If all is false, it shows only the columns and
// hosts that have odd values, and one line for all other hosts.
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
	_ = w.Flush() // a strings.Builder accepts everything
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// reach writes how long each host takes to reach each other host.
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
					text = Millis(f.Time)
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

// Millis formats a duration in milliseconds, such as a round trip between hosts.
func Millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
}
