// Package curve reads the progress of a job, and its loss, from the lines that the job prints.
package curve

import (
	"bytes"

	"github.com/gangrun/gangrun/internal/job"
)

// longest is how many bytes at the end of a line are read.
const longest = 4 << 10

// Parse returns the progress that a line of output reports. The second result is false if the line reports
// none. Parse knows "step 21/300 loss 0.12" and many similar forms, progress bars of tqdm, Keras and rich,
// dictionaries as the Hugging Face Trainer prints them, JSON, and MLPerf's log lines. A Reader also knows
// tables.
//
// Step is the first of the following numbers that the line has: a step or iteration, the count of a progress
// bar or of a form such as "[12/500]", a batch, an epoch. Step is the number as the trainer prints it. So if
// the trainer begins to count anew in each epoch, Step begins anew, too. If the trainer prints only epochs,
// Step counts epochs, and ByEpoch is true; parts of an epoch are rounded down. Total is the total that belongs
// to Step.
//
// Lines about validation, downloads and resuming are not progress. Neither are numbered headings ("Step 1:
// install"), tracebacks and configurations.
//
// If a line has carriage returns, Parse reads only its last part, which is what a terminal shows. Of a very
// long line, it reads only the last 4 KiB. It rejects most lines after one pass over their bytes.
func Parse(line []byte) (job.Progress, bool) {
	line = visible(line)
	if text, ok := bytes.CutPrefix(line, []byte(mllog)); ok {
		return parseMLLog(text)
	}
	if opens(line) {
		if p, ok := opening(line); ok {
			return p, true
		}
	}
	if !promising(line) && !summary(line) || bytes.HasPrefix(line, []byte(`  File "`)) {
		return job.Progress{}, false
	}
	var buf [longest]byte
	s := scanner{text: plain(buf[:0], line), epoch: none, bar: none, step: none, batch: none, bracket: none, weak: none, row: none, pair: [2]count{none, none}}
	s.scan()
	return s.progress()
}

// Epochs returns the number of planned epochs that a line has beside its epoch, as in "Epoch [1/10]". It
// returns 0 if the line has no such number.
func Epochs(line []byte) int64 {
	if line = visible(line); !promising(line) {
		return 0
	}
	var buf [longest]byte
	s := scanner{text: plain(buf[:0], line), epoch: none, bar: none, step: none, batch: none, bracket: none, weak: none, row: none, pair: [2]count{none, none}}
	if s.scan(); s.refused || !s.epoch.found() {
		return 0
	}
	return s.epoch.total
}

// visible returns the part of a line that is read: the end of what a terminal shows of it.
func visible(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n \t")
	if len(line) > longest {
		line = line[len(line)-longest:]
		if i := bytes.IndexByte(line, ' '); i >= 0 {
			line = line[i:] // do not begin in the middle of a word
		}
	}
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	return line
}

// shown returns what a terminal shows of a line, without escape sequences.
func shown(line []byte) []byte {
	line = visible(line)
	if bytes.IndexByte(line, 0x1b) < 0 {
		return line
	}
	out := line[:0:0]
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c != 0x1b:
			out = append(out, c)
		case i+1 < len(line) && line[i+1] == '[':
			for i += 2; i < len(line) && (line[i] < '@' || line[i] > '~'); i++ {
			}
		}
	}
	return out
}

// promising reports whether a line may be progress. It has a digit, and "step", "epoch", "iter", "batch" or
// the beginning of a bar or bracket. promising is fast, and true for some lines that are not progress.
func promising(line []byte) bool {
	digit, mark := false, false
	for i, c := range line {
		switch marks[c] {
		case 0:
			continue
		case 1:
			digit = true
		case 2:
			mark = true
		case 3:
			mark = mark || around(line, i)
		}
		if digit && mark {
			return true
		}
	}
	return false
}

// marks has the kinds of bytes: 1 for digits, 2 for bytes that are common only in lines of progress, and 3
// for letters and signs whose neighbours must be checked.
var marks = func() (m [256]byte) {
	for c := '0'; c <= '9'; c++ {
		m[c] = 1
	}
	m[0xE2] = 2 // first byte of the characters with which bars are drawn
	for _, c := range "pPtTyY%[" {
		m[c] = 3
	}
	return m
}()

func around(line []byte, i int) bool {
	at := func(d int) byte {
		if j := i + d; j >= 0 && j < len(line) {
			return line[j] | 0x20 // letters in lower case; no other byte becomes one of the letters below
		}
		return 0
	}
	switch line[i] {
	case 'y', 'Y':
		return at(-1) == 'c' && at(1) == 'c' // cycle
	case 'p', 'P':
		return at(-1) == 'e' && (at(-2) == 't' || at(1) == 'o' || at(1) == 'i') || // step, epoch, episode
			at(-1) == 'u' && (at(1) == 'd' || at(1) == '.') // update, up.
	case 't', 'T':
		return at(-1) == 'i' && at(1) == 'e' || at(-1) == 'a' && at(1) == 'c' || // iter, batch
			at(-1) == 'i' && i+2 < len(line) && line[i+1] == ' ' && line[i+2] == '[' // as in "45it ["
	case '%':
		return i+1 < len(line) && line[i+1] == '|'
	default: // a bracket
		if i+1 == len(line) {
			return false
		}
		c := line[i+1]
		return c == ' ' || c == '=' || c == '>' || c == '.' || isDigit(c)
	}
}

// plain appends text to out, in lower case and without terminal escapes and backspaces.
func plain(out, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == 0x1b && i+1 < len(text) && text[i+1] == '[':
			for i += 2; i < len(text) && (text[i] < '@' || text[i] > '~'); i++ {
			}
		case c == 0x1b || c == '\b':
		case c >= 'A' && c <= 'Z':
			out = append(out, c|0x20)
		default:
			out = append(out, c)
		}
	}
	return out
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// count is "12" or "12/500" in a line.
type count struct {
	at, total int64
	end       int // the index after the count
}

var none = count{at: -1}

func (c count) found() bool { return c.at >= 0 }

// progress chooses among the counts that the scan has found.
func (s *scanner) progress() (job.Progress, bool) {
	if s.refused {
		return job.Progress{}, false
	}
	p := job.Progress{Epoch: -1}
	if s.epoch.found() {
		p.Epoch = s.epoch.at
	} else if s.row.found() && s.bar.found() {
		p.Epoch = s.row.at
	}
	use := none
	switch {
	case s.step.found():
		use = s.step
	case s.bar.found():
		use = s.bar
	case s.bracket.found() && (s.metric || s.epoch.found() || s.alone()):
		use = s.bracket
	case s.batch.found() && (s.metric || s.epoch.found() || s.batch.total > 0):
		use = s.batch
	case s.pair[1].found() && s.loss.found:
		use, p.Epoch = s.pair[1], s.pair[0].at
	case s.weak.found() && s.metric && (s.loss.found || !s.dictionary()):
		use = s.weak
	case s.epoch.found() && (s.metric || !s.dictionary()):
		use, p.ByEpoch = s.epoch, true
	}
	if !use.found() || !s.metric && !s.bar.found() && s.prose(use.end) {
		return job.Progress{}, false
	}
	p.Step, p.Total = use.at, use.total
	if s.loss.found {
		p.SetLoss(s.loss.value)
	}
	return p, true
}

// alone reports whether the line has nothing beside the bracket.
func (s *scanner) alone() bool {
	rest := bytes.TrimSpace(s.text)
	return len(rest) > 0 && rest[0] == '[' && len(bytes.TrimRight(s.text, " \t")) == s.bracket.end
}

// dictionary reports whether the line is a dictionary. If it has no metric, it is probably a configuration.
func (s *scanner) dictionary() bool { return bytes.IndexByte(s.text, '{') >= 0 }

// prose reports whether the text at i makes the count before it a heading, as in "1: loading", "2/5 : RUN",
// "3) check" and "1 - unpack".
func (s *scanner) prose(i int) bool {
	t := s.text
	for i < len(t) && t[i] == ' ' {
		i++
	}
	if i >= len(t) || bytes.IndexByte([]byte(":-.)"), t[i]) < 0 {
		return false
	}
	for i++; i < len(t) && t[i] == ' '; i++ {
	}
	if i >= len(t) || !isLetter(t[i]) {
		return false
	}
	for i < len(t) && (isLetter(t[i]) || isDigit(t[i]) || t[i] == ' ') {
		i++
	}
	if i >= len(t) || t[i] != '=' {
		return true
	}
	rest := bytes.TrimLeft(t[i+1:], " -+.")
	return len(rest) == 0 || !isDigit(rest[0]) // "Iteration 12: x = 0.31" is not a heading
}
