package curve

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// table is a table of numbers in a stream, with a header.
type table struct {
	columns int  // of the table; 0 outside of one
	loss    int  // the column with the loss; 0 is none
	spaced  int  // columns, if names have single blanks in them: "Iter   Train Loss   Time"; 0 if they have none
	spacedL int  // the column with the loss, then
	sep     byte // between columns: a blank, a comma or a bar
	at      int  // the column with the step
	epoch   int  // the column with the epoch, if spaCy prints the table, else -1
	epochs  bool // the step is an epoch
	last    int64
	other   int // lines since the last row that were no rows
}

// counters are the names of columns that count steps, in lower case.
var counters = set("step iter iteration epoch global_step inner_iter outer_iter time_iter")

// header begins a table where the line is the header of one.
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

// spaCy begins a table of spaCy: "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE".
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

// spaces fills in the columns of a header whose names are separated by two blanks or more.
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

// split cuts a header or a row into columns.
func split(text []byte, sep byte) [][]byte {
	if sep == ' ' {
		return bytes.Fields(text)
	}
	if sep == '|' {
		text = bytes.Trim(bytes.TrimSpace(text), "|")
	}
	return bytes.Split(text, []byte{sep})
}

// row reads a row of the table. Steps go up in it.
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

// cell reads the value of a cell: a number, or nothing in a table with separators, or a time or
// percentage, whose value does not matter.
func cell(field []byte) (value float64, ok bool) {
	if len(field) == 0 {
		return math.NaN(), true
	}
	value, err := strconv.ParseFloat(strings.TrimPrefix(string(field), "-"), 64) // which knows no -nan
	switch {
	case err == nil, math.IsInf(value, 0): // an infinite one is out of range
	default:
		return 0, unit(field)
	}
	if field[0] == '-' {
		value = -value
	}
	return value, true
}

// unit reports whether a cell is a time, as in "00:12", "1.2s" and "3.20m", or a percentage.
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
