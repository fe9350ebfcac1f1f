package curve

import "bytes"

// digits handles a number that has no name before it, such as the count of a progress bar.
func (s *scanner) digits(i int) int {
	t, start := s.text, i
	at, end, ok := number(t, i)
	if !ok {
		return max(end, i+1)
	}
	if bytes.HasPrefix(t[end:], []byte("it [")) && (start == 0 || t[start-1] == ' ' || t[start-1] == '\r') && s.trainingBar(end+4) {
		s.noteBar(count{at: int64(at), end: end}) // a bar of tqdm without a total
		return end + 4
	}
	c, ok := s.fraction(i)
	if !ok {
		return end
	}
	rest := t[c.end:]
	bar := bytes.HasPrefix(rest, []byte(" [=")) || bytes.HasPrefix(rest, []byte(" [>")) || bytes.HasPrefix(rest, []byte(" [.")) || // Keras
		bytes.HasPrefix(rest, []byte(" \xe2\x94\x81")) && bytes.Contains(rest, []byte("/step")) || // Keras 3
		bytes.HasPrefix(rest, []byte(" - ")) && len(bytes.TrimSpace(t[:start])) == 0 && bytes.Contains(rest, []byte("/step")) || // Keras without a bar
		s.afterBar(start) && len(rest) > 1 && rest[0] == ' ' && s.trainingBar(c.end+1)
	if bar {
		s.noteBar(c)
	}
	if !bar && len(bytes.TrimSpace(t[:start])) == 0 && memory(rest) {
		s.row = c
	}
	if start > 0 && t[start-1] == '(' && len(bytes.TrimSpace(t[:start-1])) == 0 && bytes.HasPrefix(rest, []byte(")")) && !s.weak.found() {
		s.weak = c // as in "(300/1000) loss=0.31"
	}
	return c.end
}

// memory reports whether t begins with a size of memory in GB, as in " 13.7G".
func memory(t []byte) bool {
	i := 0
	for i < len(t) && t[i] == ' ' {
		i++
	}
	_, end, ok := number(t, i)
	return i > 0 && ok && end < len(t) && t[end] == 'g'
}

// fraction reads "12/500" at i, both whole numbers.
func (s *scanner) fraction(i int) (count, bool) {
	at, end, ok := number(s.text, i)
	if !ok || at > 1e15 || at != float64(int64(at)) {
		return none, false
	}
	total, end, ok := s.total(end)
	return count{at: int64(at), total: total, end: end}, ok
}

// afterBar reports whether a progress bar of tqdm or rich ends just before i.
func (s *scanner) afterBar(i int) bool {
	before := bytes.TrimRight(s.text[:i], " ")
	switch {
	case bytes.HasSuffix(before, []byte("|")):
		return bytes.Contains(before, []byte("%|"))
	case len(before) >= 3:
		sign := string(before[len(before)-3:])
		return sign == "━" || sign == "╸" || sign == "╺" || sign == "─"
	}
	return false
}

// trainingBar reports whether the text after the count of a bar has a time and a rate of steps. Bars that
// count bytes, files or examples are not progress.
func (s *scanner) trainingBar(i int) bool {
	rest := s.text[min(i, len(s.text)):]
	for _, rate := range [...]string{"it/s", "s/it", "step/s", "steps/s", "s/step", "batch/s", "batches/s", "s/batch", "iter/s", "s/iter"} {
		if j := bytes.Index(rest, []byte(rate)); j > 0 && (isDigit(rest[j-1]) || rest[j-1] == '?' || rest[j-1] == ' ') {
			return true
		}
	}
	return false
}

func (s *scanner) noteBar(c count) {
	if !s.bar.found() {
		s.bar = c
	}
}

// open handles a bracket: "[12/500]", "[ 640/60000 (1%)]".
func (s *scanner) open(i int) int {
	t := s.text
	j := i + 1
	for j < len(t) && t[j] == ' ' {
		j++
	}
	if j >= len(t) || !isDigit(t[j]) {
		return i + 1
	}
	if next := s.index(i, j); next > 0 {
		return next
	}
	slash := bytes.IndexByte(t[j:], '/')
	c, ok := s.fraction(j)
	if !ok || slash < 0 || slash+1 < len(t)-j && t[j+slash+1] == '0' { // "[12/05" is a date
		return i + 1
	}
	end := c.end
	if rest := t[end:]; bytes.HasPrefix(rest, []byte(" (")) {
		if k := bytes.Index(rest, []byte("%)")); k > 0 && k < 10 {
			end += k + 2
		}
	}
	for end < len(t) && t[end] == ' ' {
		end++
	}
	if end >= len(t) || t[end] != ']' {
		return i + 1
	}
	if c.end = end + 1; !s.bracket.found() {
		s.bracket = c
	}
	return c.end
}

// index handles "[10]" at i. The number begins at j. It is a step if a tab and a value follow, as XGBoost and
// LightGBM print it: "[10]\ttrain-rmse:0.3". If a blank and a name follow, it is a step if the line has a
// metric: "[10] accuracy=0.1, loss=2.3". index returns the index after the bracket, or 0 if the number is no
// step.
func (s *scanner) index(i, j int) int {
	t := s.text
	value, end, ok := number(t, j)
	if ok && end < len(t) && t[end] == ',' && i == s.start() {
		return s.two(value, end+1)
	}
	if !ok || value > 1e15 || value != float64(int64(value)) || end+1 >= len(t) || t[end] != ']' || t[end+1] != '\t' && t[end+1] != ' ' {
		return 0
	}
	name := end + 2 // the index after the bracket and a blank
	k := name
	for k < len(t) && k-name < 64 && (isLetter(t[k]) || isDigit(t[k]) || bytes.IndexByte([]byte("-_/@' "), t[k]) >= 0) {
		k++
	}
	if k == name || k >= len(t) || t[k] != ':' && t[k] != '=' || !isLetter(t[name]) {
		return 0
	}
	if k++; k < len(t) && t[k] == ' ' {
		k++
	}
	if _, _, number := s.measure(k); !number {
		return 0
	}
	c := count{at: int64(value), end: end + 1}
	switch {
	case t[end+1] == '\t' && !s.step.found():
		s.step = c
	case t[end+1] == ' ' && !s.weak.found() && i == s.start():
		s.weak = c
	}
	return c.end
}

// two handles the second number of a pair at i. It returns the index after it, or 0 if there is none.
func (s *scanner) two(epoch float64, i int) int {
	for i < len(s.text) && s.text[i] == ' ' {
		i++
	}
	step, end, ok := number(s.text, i)
	if !ok || end >= len(s.text) || s.text[end] != ']' || !counts(step) || !counts(epoch) || step != float64(int64(step)) || epoch != float64(int64(epoch)) {
		return 0
	}
	s.pair = [2]count{{at: int64(epoch), end: i}, {at: int64(step), end: end + 1}}
	return end + 1
}

// start returns the index of the first byte that is no blank, after brackets with something else in them,
// such as a date.
func (s *scanner) start() int {
	if i := bytes.Index(s.text, []byte("] [")); i >= 0 { // absl: "I0101 10:00:00.1 123 logging_writer.py:48] [10] loss=2.3"
		return i + 2
	}
	return len(s.text) - len(bytes.TrimLeft(s.text, " "))
}
