package curve

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// table reads the rows of a table of numbers with a header.
type table struct {
	columns int  // number of columns; 0 outside a table
	loss    int  // the column with the loss; 0 means none
	spaced  int  // number of columns if blanks are allowed in names, as in "Iter   Train Loss   Time"; 0 if no name has one
	spacedL int  // the column with the loss in that case
	sep     byte // what separates the columns: a blank, a comma or a bar
	at      int  // the column with the step
	epoch   int  // the column with the epoch in a table of spaCy; -1 in others
	epochs  bool // the step counts epochs
	last    int64
	other   int // number of lines since the last row
}

// counters has the names of columns that count steps, in lower case.
var counters = set("step iter iteration epoch global_step inner_iter outer_iter time_iter")

// header begins a table if the line is the header of one.
func (b *table) header(text []byte) bool {
	if b.spaCy(text) {
		return true
	}
	if len(text) < 6 || bytes.IndexByte([]byte("sSiIeEgG|#"), text[0]) < 0 {
		return false
	}
	next := table{sep: ' ', epoch: -1, last: -1}
	text = bytes.TrimLeft(text, "# ")
	switch {
	case len(text) == 0:
		return false
	case text[0] == '|':
		next.sep = '|'
	case !isLetter(text[0]) && text[0] != '"':
		return false
	case bytes.IndexByte(text, ',') >= 0:
		next.sep = ','
	}
	names := split(text, next.sep)
	next.at = -1
	for i, name := range names {
		name = bytes.Trim(name, " \"")
		if len(name) == 0 || !isLetter(name[0]) || bytes.ContainsAny(name, ":=") {
			return false
		}
		low := strings.ToLower(string(name))
		switch {
		case next.at < 0 && counters[low]:
			next.at, next.epochs = i, low == "epoch"
		case next.epochs && next.sep == ',' && (low == "step" || low == "global_step"):
			next.at, next.epochs = i, false
		case next.loss == 0 && strings.HasSuffix(low, "loss") && !validation[first(low)]:
			next.loss = i
		}
		if next.at < 0 && (next.sep == ' ' || i > 3) {
			return false
		}
	}
	if next.at < 0 || len(names) < 2 {
		return false
	}
	next.columns = len(names)
	if next.sep == ' ' {
		next.spaces(text)
	}
	*b = next
	return true
}

// spaCy begins a table if the line is the header of a table of spaCy: "E # LOSS TOK2VEC LOSS NER ENTS_F
// SCORE".
func (b *table) spaCy(text []byte) bool {
	if !bytes.HasPrefix(text, []byte("E  ")) || !bytes.HasPrefix(bytes.TrimLeft(text[1:], " "), []byte("#  ")) {
		return false
	}
	*b = table{sep: ' ', epoch: 0, at: 1, last: -1}
	for name := range strings.SplitSeq(string(text), "  ") {
		if strings.TrimSpace(name) != "" {
			b.columns++
		}
	}
	return true
}

// spaces counts the columns of a header whose names are separated by at least two blanks.
func (b *table) spaces(text []byte) {
	var names []string
	for name := range strings.SplitSeq(string(text), "  ") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if len(names) < 2 || len(names) == b.columns {
		return
	}
	b.spaced = len(names)
	for i, name := range names {
		low := strings.ToLower(name)
		if b.spacedL == 0 && strings.HasSuffix(low, "loss") && !validation[low[:strings.IndexAny(low+" ", "_ ")]] {
			b.spacedL = i
		}
	}
}

// split splits a header or a row into columns.
func split(text []byte, sep byte) [][]byte {
	if sep == ' ' {
		return bytes.Fields(text)
	}
	if sep == '|' {
		text = bytes.Trim(bytes.TrimSpace(text), "|")
	}
	return bytes.Split(text, []byte{sep})
}

// row reads a row of the table. The steps of a table increase.
func (b *table) row(text []byte) (job.Progress, bool) {
	if len(text) == 0 || !isDigit(text[0]) && (b.sep != '|' || text[0] != '|') {
		return job.Progress{}, false
	}
	fields := split(text, b.sep)
	lossAt := b.loss
	switch len(fields) {
	case b.columns:
	case b.spaced:
		lossAt = b.spacedL
	default:
		return job.Progress{}, false
	}
	step, err := strconv.ParseInt(string(bytes.TrimSpace(fields[b.at])), 10, 64)
	if err != nil || step <= b.last || step > 1e15 {
		return job.Progress{}, false
	}
	loss := math.NaN()
	for i, field := range fields {
		if i == b.at {
			continue
		}
		value, ok := cell(bytes.TrimSpace(field))
		if !ok {
			return job.Progress{}, false
		}
		if i == lossAt {
			loss = value
		}
	}
	b.last, b.other = step, 0
	p := job.Progress{Step: step, Epoch: -1}
	if b.epoch >= 0 {
		if at, err := strconv.ParseInt(string(fields[b.epoch]), 10, 64); err == nil && at >= 0 {
			p.Epoch = at
		}
	}
	if b.epochs {
		p.Epoch, p.ByEpoch = step, true
	}
	if lossAt > 0 {
		p.SetLoss(loss)
	}
	return p, true
}

// cell reads a cell: a number, a time or a percentage. In a table with separators, it may be empty. The value
// of a time or percentage does not matter.
func cell(field []byte) (value float64, ok bool) {
	if len(field) == 0 {
		return math.NaN(), true
	}
	value, err := strconv.ParseFloat(strings.TrimPrefix(string(field), "-"), 64) // ParseFloat does not know -nan
	switch {
	case err == nil, math.IsInf(value, 0): // ParseFloat returns an error for a number that is too large
	default:
		return 0, unit(field)
	}
	if field[0] == '-' {
		value = -value
	}
	return value, true
}

// unit reports whether a cell is a percentage or a time, as in "00:12", "1.2s" and "3.20m".
func unit(field []byte) bool {
	for len(field) > 0 {
		_, end, ok := number(field, 0)
		if !ok {
			return false
		}
		field = field[end:]
		if len(field) == 1 {
			return bytes.IndexByte([]byte("smh%"), field[0]) >= 0
		}
		if len(field) > 0 && field[0] != ':' {
			return false
		}
		if len(field) > 0 {
			field = field[1:]
		}
	}
	return true
}
