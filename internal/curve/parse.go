// Package curve reads the progress of a job, and its loss, from the lines that the job
// prints. It depends on nothing but these lines.
package curve

import (
	"bytes"

	"github.com/gangrun/gangrun/internal/job"
)

// longest is how much of a line is looked at, in bytes: its end.
const longest = 4 << 10

// Parse returns the progress that a line of output reports, and whether it reports any. It
// knows "step 21/300 loss 0.12" and many similar forms, progress bars of tqdm, Keras and
// rich, dictionaries as the Hugging Face Trainer prints them, JSON, and MLPerf's log lines.
// A Reader knows tables as well.
//
// Step is the first of these that the line has: a step or iteration, the count of a bar or of
// "[12/500]", a batch, an epoch. Step is the number as it is printed. If the trainer counts the
// steps of each epoch from the beginning, so does Step. If the trainer prints only epochs, Step
// counts epochs and ByEpoch is true; a part of an epoch is rounded down. Total is the total of the
// same count.
//
// Validation, downloads, resuming, numbered prose ("Step 1: install"), tracebacks and
// configuration are not progress.
//
// Only the last part of a line with carriage returns counts, as on a terminal, and only the
// last 4 KiB of a very long line. Most lines are dismissed after one pass over their bytes.
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

// visible returns the part of a line that counts: what a terminal shows of it,
// and of that the end.
func visible(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n \t")
	if len(line) > longest {
		line = line[len(line)-longest:]
		if i := bytes.IndexByte(line, ' '); i >= 0 {
			line = line[i:] // not in the middle of a word
		}
	}
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	return line
}

// shown returns what a terminal shows of a line: visible, without escapes.
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

// promising reports whether a line holds a digit and the mark of any count:
// "step", "epoch", "iter", "batch", or what bars and brackets begin with. It
// must be cheap and may say yes too often.
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

// marks: 1 a digit, 2 a byte that only progress lines are full of, 3 a letter
// or sign whose neighbours decide.
var marks = func() (m [256]byte) {
	for c := '0'; c <= '9'; c++ {
		m[c] = 1
	}
	m[0xE2] = 2 // first byte of the signs that bars are drawn with
	for _, c := range "pPtTyY%[" {
		m[c] = 3
	}
	return m
}()

func around(line []byte, i int) bool {
	at := func(d int) byte {
		if j := i + d; j >= 0 && j < len(line) {
			return line[j] | 0x20 // lower case; other bytes do not become letters that matter
		}
		return 0
	}
	switch line[i] {
	case 'y', 'Y':
		return at(-1) == 'c' && at(1) == 'c' // CYCle
	case 'p', 'P':
		return at(-1) == 'e' && (at(-2) == 't' || at(1) == 'o' || at(1) == 'i') || // stEP, EPoch, EPisode
			at(-1) == 'u' && (at(1) == 'd' || at(1) == '.') // UPdate, UP.
	case 't', 'T':
		return at(-1) == 'i' && at(1) == 'e' || at(-1) == 'a' && at(1) == 'c' || // ITEr, bATCh
			at(-1) == 'i' && i+2 < len(line) && line[i+1] == ' ' && line[i+2] == '[' // 45it [
	case '%':
		return i+1 < len(line) && line[i+1] == '|'
	default: // [
		if i+1 == len(line) {
			return false
		}
		c := line[i+1]
		return c == ' ' || c == '=' || c == '>' || c == '.' || isDigit(c)
	}
}

// plain appends text without terminal escapes and backspaces, in lower case.
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
	end       int // index after it
}

var none = count{at: -1}

func (c count) found() bool { return c.at >= 0 }

// progress weighs what the scan found.
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

// alone reports whether the bracket is the whole line.
func (s *scanner) alone() bool {
	rest := bytes.TrimSpace(s.text)
	return len(rest) > 0 && rest[0] == '[' && len(bytes.TrimRight(s.text, " \t")) == s.bracket.end
}

// dictionary reports whether the line is a dictionary: without a metric it is
// likelier somebody's configuration.
func (s *scanner) dictionary() bool { return bytes.IndexByte(s.text, '{') >= 0 }

// prose reports whether a count is followed like a heading: "1: loading",
// "2/5 : RUN", "3) check", "1 - unpack".
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
	return len(rest) == 0 || !isDigit(rest[0]) // "Iteration 12: x = 0.31" is no heading
}
