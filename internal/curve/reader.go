package curve

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Reader finds progress in the lines of one stream, which it gets in order. Besides the
// forms of Parse it knows tables: a header whose first word is "Step", "Iter" or
// "Iteration", as LAMMPS prints it for its thermodynamic output, and rows of as many
// numbers, the first of which is the step.
//
// The zero Reader is ready to use, at the beginning of a stream.
type Reader struct {
	columns int   // of the table; 0 outside of one
	loss    int   // the column with the loss; 0 is none
	last    int64 // the step of the last row; -1 before the first
	other   int   // lines since then that were no rows
	setup   bool  // the line before was of the block that LAMMPS sets a run up with
}

// maxOther is how many lines in a row may stand between two rows: LAMMPS prints
// warnings there, and what a script has it print.
const maxOther = 20

// Line returns the progress that the next line reports, and whether it reports any. See
// Parse.
func (r *Reader) Line(line []byte) (job.Progress, bool) {
	line = visible(line)
	text := bytes.TrimLeft(line, " \t")
	setup := r.setup
	r.setup = bytes.HasPrefix(text, []byte("Unit style "))
	switch {
	case setup && bytes.HasPrefix(text, []byte("Current step ")):
		return job.Progress{}, false // where the run will begin
	case r.header(text):
		return job.Progress{}, false
	case r.columns > 0:
		if p, ok := r.row(text); ok {
			return p, true
		}
		if r.other++; r.other > maxOther || bytes.HasPrefix(text, []byte("Loop time of ")) {
			r.columns = 0
		}
	}
	return Parse(line)
}

// Skip takes the next lines of the stream without parsing each of them. It still finds the
// header of a table.
func (r *Reader) Skip(lines []byte) {
	const most = 16 // headers are rare
	for range most {
		i := bytes.Index(lines, []byte("Step"))
		if i < 0 {
			return
		}
		from := bytes.LastIndexAny(lines[:i], "\n\r") + 1
		line, rest := lines[from:], []byte(nil)
		if end := bytes.IndexAny(line, "\n\r"); end >= 0 {
			line, rest = line[:end], line[end+1:]
		}
		r.header(bytes.Trim(line, " \t"))
		lines = rest
	}
}

// header begins a table where the line is the header of one.
func (r *Reader) header(text []byte) bool {
	end := bytes.IndexAny(text, " \t")
	if end < 0 || bytes.IndexByte([]byte("sSiI"), text[0]) < 0 {
		return false
	}
	switch strings.ToLower(string(text[:end])) {
	case "step", "iter", "iteration":
	default:
		return false
	}
	names := bytes.Fields(text[end:])
	loss := 0
	for i, name := range names {
		if !isLetter(name[0]) || bytes.ContainsAny(name, ":=,") {
			return false
		}
		low := strings.ToLower(string(name))
		if loss == 0 && strings.HasSuffix(low, "loss") && !validation[first(low)] {
			loss = i + 1
		}
	}
	r.columns, r.loss, r.last, r.other = len(names)+1, loss, -1, 0
	return true
}

// row reads a row of the table. Steps go up in it.
func (r *Reader) row(text []byte) (job.Progress, bool) {
	if len(text) == 0 || !isDigit(text[0]) {
		return job.Progress{}, false
	}
	fields := bytes.Fields(text)
	if len(fields) != r.columns {
		return job.Progress{}, false
	}
	step, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil || step <= r.last || step > 1e15 {
		return job.Progress{}, false
	}
	loss := math.NaN()
	for i, field := range fields[1:] {
		value, err := strconv.ParseFloat(strings.TrimPrefix(string(field), "-"), 64) // which knows no -nan
		if err != nil && !math.IsInf(value, 0) {                                     // an infinite one is out of range
			return job.Progress{}, false
		}
		if field[0] == '-' {
			value = -value
		}
		if i+1 == r.loss {
			loss = value
		}
	}
	r.last, r.other = step, 0
	p := job.Progress{Step: step, Epoch: -1}
	if r.loss > 0 {
		p.SetLoss(loss)
	}
	return p, true
}
