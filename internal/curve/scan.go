package curve

import (
	"bytes"
	"strings"
)

// scanner reads a line once and records the counts that may be its progress, the first of each kind.
type scanner struct {
	text                             []byte // as from plain
	step, epoch, batch, bar, bracket count
	weak                             count    // a count whose name means a step only if the line has a metric
	row                              count    // the epochs at the beginning of a row of Ultralytics: "1/100  13.7G  1.054"
	pair                             [2]count // the epoch and the step of "[1,  2000] loss: 2.173"
	loss                             struct {
		found, plain bool // plain: it is the whole loss, not a part of it
		value        float64
	}
	metric  bool // the line has a loss, rate or accuracy with its value
	refused bool // the line is about something else
}

func (s *scanner) scan() {
	var before string // the word before the present one
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

// word handles a word that ends at end, and returns the index after what it has read. slash says that a slash
// is before the word. Such a word is part of a path, and a count only if the path is the name of a metric, as
// in "trainer/global_step".
func (s *scanner) word(before, word string, end int, slash bool) int {
	counted := s.step.found() || s.epoch.found() || s.bar.found()
	switch {
	case !counted && (elsewhere(word) || validation[word] && s.heads(end)):
		s.refused = true
		return end
	case strings.HasSuffix(word, "loss"):
		if _, _, ok := s.measureOf(word, end); ok && !validation[before] && !validation[first(word)] {
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
		return c.end // as in "step 1 of the build"
	}
	*into = c
	if into == &s.epoch {
		return s.inEpoch(c.end)
	}
	return c.end
}

// inEpoch reads the count that directly follows an epoch in lines of fairseq: "epoch 001: 10 / 500 loss=". It
// returns the index after the count.
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

// stepNumber reports whether the text before "number" at i begins a line of CP2K with a step: "MD| Step", or
// "STEP" in old versions.
func (s *scanner) stepNumber(i int) bool {
	before := bytes.TrimPrefix(bytes.TrimLeft(s.text[:i], " "), []byte("md| "))
	return string(bytes.TrimSpace(before)) == "step"
}

// heads reports whether the word that ends at i is a heading, as in "Test: [ 10/391]" and "valid | epoch 1".
func (s *scanner) heads(i int) bool {
	rest := bytes.TrimLeft(s.text[i:], " ")
	return len(rest) > 0 && bytes.IndexByte([]byte(":[|]"), rest[0]) >= 0
}

func first(word string) string {
	head, _, _ := strings.Cut(word, "_")
	return head
}

// notProgress has words after which a step or an epoch is not the present one.
var notProgress = set("per each every first job max maximum min total num number last best next until since unix from warmup save log eval")

var validation = set("val valid validation eval evaluation evaluating test testing dev predict predicting sanity")

// measured has names that are beside a count only during training.
var measured = set("lr learning_rate acc accuracy ppl perplexity grad_norm eta mfu loss_scale time top1 " +
	"acc1 throughput reward energy residual norm dt mae mse rmse bleu f1 train_acc train_accuracy")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// elsewhere reports whether a line that has this word before any count is about something else than a step
// that was made.
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

// count reads the count that follows its name at i, as in ": 12", "=12", " [12/500]", "': 12", " 10/ 500000"
// and "12 of 300".
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
		return none, false // this is a line of source code
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

// boundary reports whether a number may end at i. It may not end inside a file name, a unit, a version, a
// date or a time.
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
