package curve

import (
	"bytes"

	"github.com/gangrun/gangrun/internal/job"
)

// Reader finds progress in the lines of one stream. It must get the lines in order. It knows the forms that
// Parse knows, and also tables. A table has a header whose first word is "Step", "Iter", "Iteration" or
// "Epoch", as LAMMPS prints it for its thermodynamic output. Its rows have as many numbers as the header has
// words, and the first number is the step. The columns may also be separated by commas or bars. A Reader also
// counts the time steps of OpenFOAM and WRF, because these programs print only the time of each step.
//
// The zero Reader is ready to use at the beginning of a stream.
type Reader struct {
	// Pattern, if it is not nil, is the only form that the Reader knows.
	Pattern *Pattern

	table table
	setup bool  // the last line was one of those with which LAMMPS describes a run before it begins
	foam  bool  // OpenFOAM has begun its time loop
	times int64 // number of time steps
}

// maxOther limits how many lines there may be between two rows of a table. LAMMPS prints warnings and the output of
// scripts there.
const maxOther = 20

// Line returns the progress that the next line reports. The second result is false if the line reports none.
// See Parse.
func (r *Reader) Line(line []byte) (job.Progress, bool) {
	if r.Pattern != nil {
		return r.Pattern.Line(line)
	}
	line = visible(line)
	text := bytes.TrimLeft(line, " \t")
	setup := r.setup
	r.setup = bytes.HasPrefix(text, []byte("Unit style "))
	switch {
	case setup && (bytes.HasPrefix(text, []byte("Current step ")) || bytes.HasPrefix(text, []byte("Time step "))):
		r.setup = true
		return job.Progress{}, false // the step at which the run will begin
	case r.time(text):
		r.times++
		return job.Progress{Step: r.times, Epoch: -1}, true
	case r.table.header(text):
	case r.table.columns > 0:
		if p, ok := r.table.row(text); ok {
			return p, true
		}
		if r.table.other++; r.table.other > maxOther || bytes.HasPrefix(text, []byte("Loop time of ")) {
			r.table.columns = 0
		}
	}
	return Parse(line)
}

// time reports whether a line begins a time step, as "Time = 0.005" of OpenFOAM or "Timing for main: time
// 2005-08-28_00:03:00 on domain 1: 2.03 elapsed seconds" of WRF.
func (r *Reader) time(text []byte) bool {
	if len(text) < 8 {
		return false
	}
	switch text[0] {
	case 'S':
		r.foam = r.foam || bytes.Equal(text, []byte("Starting time loop"))
	case 'E':
		r.foam = r.foam || bytes.HasPrefix(text, []byte("ExecutionTime = "))
	case 'T':
		if at, ok := bytes.CutPrefix(text, []byte("Time = ")); ok && r.foam {
			_, end, ok := number(at, 0)
			return ok && (end == len(at) || string(at[end:]) == "s")
		}
		return bytes.HasPrefix(text, []byte("Timing for main: time ")) && bytes.Contains(text, []byte(" on domain "))
	}
	return false
}

// Skip passes over the next lines of the stream. It does not look for progress in them, but it finds the header
// of a table.
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
		r.table.header(bytes.Trim(line, " \t"))
		lines = rest
	}
}
