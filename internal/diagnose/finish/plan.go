package finish

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// plan is how far the work of each rank got that a log counts, and how far it was to get.
type plan struct {
	// reached has for each rank, or -1, the number of the line with which the rank came to the end of what was planned.
	reached map[int]int
	// first has for each rank that counts work the number of the first line that does.
	first map[int]int
	// behind is true if a rank did not come to the end.
	behind bool
}

// series is what one rank has counted with one word.
type series struct {
	word         string
	rank         int
	least, most  int
	total        int // that stands behind the last number, or 0
	lines        int // with a number that is higher than all before
	first, at    int // the numbers of the first line, and of the first line with the highest number
	fell, counts int // how often a lower number followed the highest; the lines
}

// figure is a number in a line, with the word before it and the total behind it, or 0.
type figure struct {
	word     string
	n, total int
}

const (
	maxFigures = 4 // of a line that are looked at
	maxWord    = 24
	distinct   = 10 // a planned number that is not less than this one tells enough without its word
)

// figures returns the numbers of a line that stand behind a word, as in "step 12", "step=12" and "step 12 of 40", or before
// a total.
func figures(t string) (all []figure) {
	for i := 0; i < len(t) && len(all) < maxFigures; {
		if t[i] < '0' || t[i] > '9' {
			i++
			continue
		}
		begin := i
		n, end := number(t, i)
		if i = end; begin > 0 && (t[begin-1] == '.' || t[begin-1] == '-' || letter(t[begin-1])) || end < len(t) && (letter(t[end]) || t[end] == ':' || t[end] == '.' && end+1 < len(t) && t[end+1] >= '0' && t[end+1] <= '9') {
			continue
		}
		f := figure{word: wordBefore(t[:begin]), n: n}
		for _, sep := range [...]string{"/", " / ", " of "} {
			if rest, ok := strings.CutPrefix(t[end:], sep); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				f.total, i = number(t, end+len(sep))
			}
		}
		if f.word != "" || f.total > 0 {
			all = append(all, f)
		}
	}
	return all
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// number returns the number at i of a text, and where it ends.
func number(t string, i int) (n, end int) {
	for end = i; end < len(t) && t[end] >= '0' && t[end] <= '9'; end++ {
	}
	n, _ = strconv.Atoi(t[i:min(end, i+9)])
	return n, end
}

// wordBefore returns the word with which a text ends, without what stands between a name and its value.
func wordBefore(t string) string {
	t = strings.TrimRight(t, " \t:=#[(\"'")
	i := len(t)
	for i > 0 && len(t)-i <= maxWord && letter(t[i-1]) {
		i--
	}
	return strings.ToLower(t[i:])
}

// planned is a word for how much work there is to do.
var planned = textmatch.New(`^(?:n|nr|num|max|total|end|last|final|stop|target|train|training)_?(?:train_?)?(?:` + unit + `|t|time)e?s?$|^(?:` + unit + `|t|time)e?s?_?(?:max|end|total|limit|stop)$|^(?:` + unit + `)e?s$`)

const unit = `step|epoch|iter|iteration|update|cycle|round|sweep|generation|frame|traj|trajectorie|batch|block|tile|chunk|pass|sample|episode|game|trial|fold|point|task|file|part`

// maxPlanned is how many values a word may have that tells how much work there is. A word with more of them counts work.
const maxPlanned = 2

// readPlans finds how far the work was to get, in all logs, and how far it got in each.
func (j *Job) readPlans() {
	isPlan, values := map[string]bool{}, map[string]map[int]bool{}
	all := map[*log]map[[2]any]*series{}
	for _, file := range j.files {
		all[file] = map[[2]any]*series{}
		for _, l := range file.lines {
			if len(l.Text) >= maxLine || l.Sign || l.Mark&(outlook.Error|outlook.Bad|outlook.Long) != 0 {
				continue
			}
			for _, f := range figures(l.Text) {
				is, known := isPlan[f.word]
				if !known {
					is = planned.MatchString(f.word)
					isPlan[f.word] = is
				}
				if is && f.total == 0 {
					if values[f.word] == nil {
						values[f.word] = map[int]bool{}
					}
					if len(values[f.word]) <= maxPlanned {
						values[f.word][f.n] = true
					}
				}
				key := [2]any{f.word, l.Rank}
				s := all[file][key]
				if s == nil {
					s = &series{word: f.word, rank: l.Rank, least: f.n, most: -1, first: l.Number}
					all[file][key] = s
				}
				s.add(f, l.Number)
			}
		}
	}
	for file, of := range all {
		file.plan = plan{reached: map[int]int{}, first: map[int]int{}}
		behind := map[int]int{}
		for _, s := range of {
			if s.lines < several || s.fell > 0 {
				continue
			}
			if at, ok := file.plan.first[s.rank]; !ok || s.first < at {
				file.plan.first[s.rank] = s.first
			}
			if s.complete(values) {
				file.plan.reached[s.rank] = max(file.plan.reached[s.rank], s.at)
			} else if s.total > 0 {
				behind[s.rank] = max(behind[s.rank], s.at)
			}
		}
		for rank, at := range behind {
			if file.plan.reached[rank] < at {
				delete(file.plan.reached, rank)
				file.plan.behind = true
			}
		}
	}
}

// add adds a number of a line.
func (s *series) add(f figure, number int) {
	s.counts++
	if f.total > 0 {
		s.total = f.total
	}
	s.least = min(s.least, f.n)
	switch {
	case f.n > s.most:
		s.most, s.at, s.fell = f.n, number, 0
		s.lines++
	case f.n < s.most:
		s.fell++
	}
}

// complete reports whether a series ends with a number that was planned, or with the last before it if it began with zero.
func (s *series) complete(values map[string]map[int]bool) bool {
	is := func(n int) bool { return s.most == n || s.most == n-1 && s.least == 0 }
	if s.total > 0 {
		return is(s.total)
	}
	for word, of := range values {
		if len(of) > maxPlanned {
			continue
		}
		for n := range of {
			if is(n) && word != s.word && (n >= distinct || s.word != "" && strings.Contains(word, s.word)) {
				return true
			}
		}
	}
	return false
}

// Reaches reports whether the work that a log counts went on after a line of a rank, or of an unknown one, and came to the
// end of what was planned, and nothing failed after that.
func (j *Job) Reaches(file string, number, rank int) bool {
	l := j.files[file]
	if l == nil || len(l.plan.reached) == 0 {
		return false
	}
	ranks := []int{rank}
	if _, counts := l.plan.first[rank]; rank < 0 || !counts {
		ranks = ranks[:0]
		for r := range l.plan.first {
			ranks = append(ranks, r)
		}
	}
	last := 0
	for _, r := range ranks {
		at := l.plan.reached[r]
		if at <= number || l.plan.first[r] >= number {
			return false
		}
		last = max(last, at)
	}
	return len(ranks) > 0 && l.calm(last) && !slices.ContainsFunc(l.lines, func(o Line) bool { return len(o.Text) < maxLine && outlook.FailedTest(o.Text) })
}

// Over reports whether the work was done before a line of a log: one of the lines before says so, or all that was planned is
// done, and no work and no failure is reported afterwards.
func (j *Job) Over(file string, number int) bool {
	l := j.files[file]
	if l == nil || !l.calm(number) || advances(l.after(number)) > 0 {
		return false
	}
	for _, at := range l.plan.reached {
		if rest := l.after(at); !l.plan.behind && at < number && advances(rest) < several {
			return true
		}
	}
	before, seen := l.lines[:len(l.lines)-len(l.after(number-1))], 0
	for i := len(before) - 1; i >= 0 && seen < several; i-- {
		switch b := before[i]; {
		case b.Mark&outlook.Epilogue != 0 && !outlook.OfScript(b.Text) && !alike(before[:i], b), good(b) && !l.plan.behind:
			return true
		case b.Mark&(outlook.Bad|outlook.Advance) != 0:
			return false
		case b.Mark&outlook.Aside == 0:
			seen++
		}
	}
	return false
}

// alike reports whether one of some lines differs from a line only in numbers.
func alike(lines []Line, l Line) bool {
	f := form(l.Text)
	return slices.ContainsFunc(lines, func(o Line) bool { return o.Rank == l.Rank && len(o.Text) < maxLine && form(o.Text) == f })
}

// Counts reports whether a log counts work.
func (j *Job) Counts(file string) bool {
	l := j.files[file]
	return l != nil && (len(l.plan.first) > 0 || advances(l.lines) > 0)
}

// Told reports whether another file, which has no output of the job, says that the whole job came to a good end.
func (j *Job) Told(file string) bool {
	for name, l := range j.files {
		if name == file || l.failed >= 0 || advances(l.lines) > 0 {
			continue
		}
		for _, o := range l.lines {
			if whole := outlook.Done | outlook.All | outlook.Zero; o.Mark&whole == whole {
				return true
			}
		}
	}
	return false
}

// LeaderLeft reports whether, before a line of a log, the process that leads the job ended with code 0, and no work is
// counted after that.
func (j *Job) LeaderLeft(file string, number int) bool {
	l := j.files[file]
	if l == nil {
		return false
	}
	for i := len(l.lines) - len(l.after(number-1)) - 1; i >= 0 && l.lines[i].Mark&outlook.Advance == 0; i-- {
		if outlook.LeaderLeft(l.lines[i].Text) {
			return advances(l.after(number)) == 0
		}
	}
	return false
}

// Declared reports whether one of the lines just before a line says that the whole job succeeded, and neither work nor a
// failure follows that line.
func (j *Job) Declared(file string, number int) bool {
	l := j.files[file]
	if l == nil || !l.calm(number) || advances(l.after(number)) > 0 {
		return false
	}
	before := l.lines[:len(l.lines)-len(l.after(number-1))]
	for i := len(before) - 1; i >= max(0, len(before)-2*several); i-- {
		switch m := before[i].Mark; {
		case m&outlook.Done != 0 && m&outlook.All != 0:
			return true
		case m&(outlook.Bad|outlook.Advance) != 0:
			return false
		}
	}
	return false
}

// done reports whether all planned work is done.
func (l *log) done() bool {
	last := 0
	for _, at := range l.plan.reached {
		last = max(last, at)
	}
	return last > 0 && !l.plan.behind && len(l.plan.reached) == len(l.plan.first) && l.calm(last)
}

// calm reports whether no line after a number says that something ended badly.
func (l *log) calm(number int) bool {
	for _, o := range l.after(number) {
		if o.Mark&outlook.Bad != 0 || o.Sign && outlook.Fatal(o.Text) && !outlook.Farewell(o.Text) {
			return false
		}
	}
	return true
}
