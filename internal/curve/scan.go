package curve

import (
	"bytes"
	"strings"
)

// scanner goes over a line once and notes every count that may tell progress,
// the first of each kind.
type scanner struct {
	text                             []byte // plain, lower case
	step, epoch, batch, bar, bracket count
	weak                             count    // of a name that means a step only beside a metric
	row                              count    // epochs that begin a row of Ultralytics: "1/100  13.7G  1.054"
	pair                             [2]count // epoch and step of "[1,  2000] loss: 2.173"
	loss                             struct {
		found, plain bool // plain: the loss itself, no part of it
		value        float64
	}
	metric  bool // a loss, rate or accuracy with its value is there
	refused bool // the line tells of something else
}

func (s *scanner) scan() {
	var before string // the word before
	for i := 0; i < len(s.text); {
		switch c := s.text[i]; {
		case isLetter(c):
			end := i + 1
			for end < len(s.text) && (isLetter(s.text[end]) || isDigit(s.text[end])) {
				end++
			}
			word := string(s.text[i:end])
			glued := i > 0 && (s.text[i-1] == '-' || s.text[i-1] == '.')
			if glued {
				before = ""
			}
			i = s.word(before, word, end, i > 0 && s.text[i-1] == '/')
			before = word
		case isDigit(c):
			i = s.digits(i)
		case c == '[':
			i = s.open(i)
		default:
			i++
		}
		if s.refused {
			return
		}
	}
}

// word handles an identifier and returns where to go on. A path's part, that
// is one after a slash, is a count only where it is a metric's name, as in
// "trainer/global_step".
func (s *scanner) word(before, word string, end int, slash bool) int {
	counted := s.step.found() || s.epoch.found() || s.bar.found()
	switch {
	case !counted && (elsewhere(word) || validation[word] && s.heads(end)):
		s.refused = true
		return end
	case strings.HasSuffix(word, "loss"):
		if _, _, ok := s.measure(end); ok && !validation[before] && !validation[first(word)] {
			s.noteLoss(word, end)
		}
	case measured[word]:
		if _, _, ok := s.measure(end); ok {
			s.metric = true
		}
	}
	var into *count
	switch word {
	case "step", "iter", "iteration", "global_step", "train_step", "training_step", "current_step", "cur_step",
		"global_iter", "train_iter", "current_iter", "cur_iter", "iter_num", "_step", "nstep", "timestep", "time_step",
		"total_timesteps", "timesteps_total", "training_iteration", "num_updates", "inner_iter", "time_tsnumber":
		into = &s.step
	case "train": // timm: "Train: 0 [  50/1251 (  4%)]"
		c, ok := s.count(end, false)
		if ok && !s.epoch.found() && bytes.HasPrefix(s.text[c.end:], []byte(" [")) {
			s.epoch = c
			return c.end
		}
		return end
	case "cycle", "steps", "update", "updates", "episode", "episodes", "n_updates", "timesteps":
		into = &s.weak
	case "up": // Marian: "Ep. 1 : Up. 100 : Sen. 6,400 : Cost 9.2"
		if end >= len(s.text) || s.text[end] != '.' {
			return end
		}
		end++
		into = &s.weak
	case "epoch", "train_epoch", "current_epoch", "cur_epoch":
		into = &s.epoch
	case "batch", "minibatch":
		into = &s.batch
	case "number":
		if !s.stepNumber(end - len(word)) {
			return end
		}
		into = &s.step
	default:
		return end
	}
	if into.found() || slash && !strings.Contains(word, "_step") || notProgress[before] || validation[before] || before == "info" && word == "timestep" {
		return end
	}
	if bytes.HasPrefix(s.text[end:], []byte("(")) && into != &s.batch { // MMEngine: "Epoch(train) [1][50/1000]"
		if !bytes.HasPrefix(s.text[end:], []byte("(train)")) {
			s.refused = bytes.HasPrefix(s.text[end:], []byte("(val)")) || bytes.HasPrefix(s.text[end:], []byte("(test)"))
			return end
		}
		end += len("(train)")
	}
	c, ok := s.count(end, into == &s.epoch)
	if !ok {
		return end
	}
	if bytes.HasPrefix(s.text[c.end:], []byte(" of the ")) {
		return c.end // "step 1 of the build"
	}
	*into = c
	if into == &s.epoch {
		return s.inEpoch(c.end)
	}
	return c.end
}

// inEpoch reads the count that stands right behind an epoch, as fairseq prints it: "epoch 001:     10 / 500 loss=".
// It returns where to go on.
func (s *scanner) inEpoch(i int) int {
	j := i
	for j < len(s.text) && (s.text[j] == ':' || s.text[j] == ' ') {
		j++
	}
	if j == i || j >= len(s.text) || !isDigit(s.text[j]) || s.bracket.found() || bytes.HasPrefix(s.text[j:], []byte("0:")) {
		return i
	}
	c, ok := s.fraction(j)
	if !ok || c.total == 0 || c.end < len(s.text) && s.text[c.end] != ' ' {
		return i
	}
	s.bracket = c
	return c.end
}

// stepNumber reports whether what stands before "number" at i is how CP2K begins
// the line with its step: "MD| Step", and "STEP" in old versions.
func (s *scanner) stepNumber(i int) bool {
	before := bytes.TrimPrefix(bytes.TrimLeft(s.text[:i], " "), []byte("md| "))
	return string(bytes.TrimSpace(before)) == "step"
}

// heads reports whether the word that ends at i is the heading of its line: "Test: [ 10/391]", "valid | epoch 1".
func (s *scanner) heads(i int) bool {
	rest := bytes.TrimLeft(s.text[i:], " ")
	return len(rest) > 0 && bytes.IndexByte([]byte(":[|]"), rest[0]) >= 0
}

func first(word string) string {
	head, _, _ := strings.Cut(word, "_")
	return head
}

// notProgress are words after which a step or an epoch is not the present one.
var notProgress = set("per each every first job max maximum min total num number last best next until since unix from warmup save log eval")

var validation = set("val valid validation eval evaluation evaluating test testing dev predict predicting sanity")

// measured are names that stand beside a count only in training.
var measured = set("lr learning_rate acc accuracy ppl perplexity grad_norm eta mfu loss_scale time top1 " +
	"acc1 throughput reward energy residual norm dt mae mse rmse bleu f1 train_acc train_accuracy")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// elsewhere reports whether a word that comes before any count says that the
// line is about something other than a step that was taken.
func elsewhere(word string) bool {
	switch word {
	case "traceback", "error", "exception", "warning", "usage", "loading", "loaded", "load", "fetching", "generating",
		"tokenizing", "extracting", "scanning", "caching", "plotting", "map50", "collecting", "warmup", "saving", "reading", "skipping", "sanity", "validation", "validating", "evaluating", "evaluation", "predicting", "testing":
		return true
	}
	for _, head := range [...]string{"resum", "restor", "reload", "download", "upload", "preprocess"} {
		if strings.HasPrefix(word, head) {
			return true
		}
	}
	return len(word) > 5 && (strings.HasSuffix(word, "error") || strings.HasSuffix(word, "exception") || strings.HasSuffix(word, "warning"))
}

// count reads what follows a count's name at i: ": 12", "=12", " [12/500]",
// "': 12", "   10/  500000", "12 of 300".
func (s *scanner) count(i int, part bool) (count, bool) {
	t := s.text
	for signs := 0; i < len(t) && bytes.IndexByte([]byte(" \t:='\"#[|"), t[i]) >= 0; i++ {
		if t[i] == ':' || t[i] == '=' || t[i] == '|' {
			if signs++; signs > 1 {
				return none, false
			}
		}
	}
	assigned := i > 2 && t[i-1] == ' ' && t[i-2] == '='
	start := i
	value, i, ok := number(t, i)
	if !ok || value > 1e15 || !part && value != float64(int64(value)) {
		return none, false
	}
	if bytes.HasPrefix(t[i:], []byte("-")) && t[start-1] == '[' { // MXNet: "Batch [0-50]"
		if last, end, ok := number(t, i+1); ok && last >= value && last == float64(int64(last)) && last <= 1e15 {
			value, i = last, end
		}
	}
	c := count{at: int64(value), end: i}
	if total, end, ok := s.total(i); ok {
		c.total, c.end = total, end
	} else if !s.boundary(i) {
		return none, false
	}
	if t[start-1] == '[' && c.end+2 < len(t) && t[c.end] == ',' && isDigit(t[c.end+2]) {
		return none, false // a list: "decays at step [100, 200]"
	}
	if assigned && c.end == len(t) && bytes.HasPrefix(t, []byte("    ")) && !bytes.ContainsAny(t[4:start], ",:") {
		return none, false // a line of source code
	}
	return c, true
}

// total reads "/500" or " of 500" at i.
func (s *scanner) total(i int) (int64, int, bool) {
	t := s.text
	skip := func() {
		for i < len(t) && (t[i] == ' ' || t[i] == '\'' || t[i] == '"') {
			i++
		}
	}
	skip()
	switch {
	case i < len(t) && t[i] == '/':
		i++
	case bytes.HasPrefix(t[i:], []byte("of ")):
		i += 3
	default:
		return 0, i, false
	}
	skip()
	value, i, ok := number(t, i)
	if !ok || value > 1e15 || value != float64(int64(value)) || !s.boundary(i) {
		return 0, i, false
	}
	return int64(value), i, true
}

// boundary reports whether a number may end at i: not inside a file name, a
// unit, a version, a date or a time.
func (s *scanner) boundary(i int) bool {
	t := s.text
	if i >= len(t) {
		return true
	}
	switch t[i] {
	case ' ', '\t', ',', ';', '|', ')', ']', '}', '\'', '"':
		return true
	case ':', '.':
		return i+1 >= len(t) || t[i+1] == ' ' || t[i+1] == '\t'
	}
	return false
}

// digits handles a number that no name introduces: the count of a bar.
func (s *scanner) digits(i int) int {
	t, start := s.text, i
	at, end, ok := number(t, i)
	if !ok {
		return max(end, i+1)
	}
	if bytes.HasPrefix(t[end:], []byte("it [")) && (start == 0 || t[start-1] == ' ' || t[start-1] == '\r') && s.trainingBar(end+4) {
		s.noteBar(count{at: int64(at), end: end}) // tqdm that knows no total
		return end + 4
	}
	c, ok := s.fraction(i)
	if !ok {
		return end
	}
	rest := t[c.end:]
	bar := bytes.HasPrefix(rest, []byte(" [=")) || bytes.HasPrefix(rest, []byte(" [>")) || bytes.HasPrefix(rest, []byte(" [.")) || // Keras
		bytes.HasPrefix(rest, []byte(" \xe2\x94\x81")) && bytes.Contains(rest, []byte("/step")) || // Keras 3
		bytes.HasPrefix(rest, []byte(" - ")) && len(bytes.TrimSpace(t[:start])) == 0 && bytes.Contains(rest, []byte("/step")) || // without a bar
		s.afterBar(start) && len(rest) > 1 && rest[0] == ' ' && s.trainingBar(c.end+1)
	if bar {
		s.noteBar(c)
	}
	if !bar && len(bytes.TrimSpace(t[:start])) == 0 && memory(rest) {
		s.row = c
	}
	if start > 0 && t[start-1] == '(' && len(bytes.TrimSpace(t[:start-1])) == 0 && bytes.HasPrefix(rest, []byte(")")) && !s.weak.found() {
		s.weak = c // "(300/1000) loss=0.31"
	}
	return c.end
}

// memory reports whether a row goes on with memory in GB: "  13.7G".
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

// afterBar reports whether a bar was drawn just before i, by tqdm or rich.
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

// trainingBar reports whether what follows a bar's count is the time and rate
// of steps, not of bytes, files or examples.
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
	if !ok || slash < 0 || slash+1 < len(t)-j && t[j+slash+1] == '0' { // [12/05 is a date
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

// index handles "[10]" at i, whose number is at j, and returns where to go on, or 0. Before a tab and
// a value it is a step, as XGBoost and LightGBM print it: "[10]\ttrain-rmse:0.3". Before a blank and a
// value it is one if there is a metric: "[10] accuracy=0.1, loss=2.3".
func (s *scanner) index(i, j int) int {
	t := s.text
	value, end, ok := number(t, j)
	if ok && end < len(t) && t[end] == ',' && i == s.start() {
		return s.two(value, end+1)
	}
	if !ok || value > 1e15 || value != float64(int64(value)) || end+1 >= len(t) || t[end] != ']' || t[end+1] != '\t' && t[end+1] != ' ' {
		return 0
	}
	name := end + 2 // after the bracket and a blank
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

// two handles the second number of a pair at i, and returns where to go on, or 0.
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

// start returns the index of the first byte that is neither blank nor of another bracket, as of a date.
func (s *scanner) start() int {
	if i := bytes.Index(s.text, []byte("] [")); i >= 0 { // absl: "I0101 10:00:00.1 123 logging_writer.py:48] [10] loss=2.3"
		return i + 2
	}
	return len(s.text) - len(bytes.TrimLeft(s.text, " "))
}

// measure reads the value of a metric after its name: a number, or one that is
// not finite.
func (s *scanner) measure(i int) (float64, int, bool) {
	t := s.text
	for n := 0; i < len(t) && n < 12 && bytes.IndexByte([]byte(" \t:='\"|(["), t[i]) >= 0; n++ {
		i++
	}
	if bytes.HasPrefix(t[i:], []byte("tensor(")) {
		i += len("tensor(")
	}
	sign := 1.0
	if i+1 < len(t) && (t[i] == '-' || t[i] == '+' && isLetter(t[i+1])) {
		if t[i] == '-' {
			sign = -1
		}
		i++
	}
	value, end, ok := notFinite(t, i)
	if !ok {
		value, end, ok = number(t, i)
	}
	return sign * value, end, ok
}

// noteLoss keeps the loss of the line: the plain or whole one where there is
// one, else the first part of it.
func (s *scanner) noteLoss(word string, end int) {
	s.metric = true
	whole := word == "loss" || word == "train_loss" || word == "training_loss" || word == "total_loss" || word == "avg_loss" || word == "lm_loss"
	if s.loss.plain || s.loss.found && !whole {
		return
	}
	value, _, _ := s.measure(end)
	s.loss.found, s.loss.plain, s.loss.value = true, whole, value
}
