package finish

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// plan says how far each rank got with the work that a log counts, and whether it got as far as planned.
type plan struct {
	// reached has, for each rank (or -1) that completed the planned work, the number of the line with which it did.
	reached map[int]int
	// first has, for each rank that counts work, the number of the first line that does.
	first map[int]int
	// behind is true if a rank did not complete the planned work.
	behind bool
}

// counter is a word with which a rank counts.
type counter struct {
	word string
	rank int
}

// series is what one rank counted with one word.
type series struct {
	counter
	least, most int
	total       int // the total after the number, or 0
	lines       int // lines whose number is higher than all before
	first, at   int // line numbers: of the first line, and of the first line with the highest number
	fell        int // how many lower numbers followed the highest
}

// planned matches a word that names the amount of work to do.
var planned = textmatch.New(`^(?:n|nr|num|max|total|end|last|final|stop|target|train|training)_?(?:train_?)?(?:` + unit + `|t|time)e?s?$|^(?:` + unit + `|t|time)e?s?_?(?:max|end|total|limit|stop)$|^(?:` + unit + `)e?s$`)

const unit = `step|epoch|iter|iteration|update|cycle|round|sweep|generation|frame|traj|trajectorie|batch|block|tile|chunk|pass|sample|episode|game|trial|fold|point|task|file|part`

// distinct is the least planned number that a count may match without a word in common.
const distinct = 10

// maxPlanned is how many different values a word for the amount of work may have. A word with more values counts work.
const maxPlanned = 2

// readPlans finds the amounts of planned work in all logs, and for each log how far the work got.
func (j *Job) readPlans() {
	isPlan, values := map[string]bool{}, map[string]map[int]bool{}
	all := map[*log]map[counter]*series{}
	for _, file := range j.files {
		all[file] = map[counter]*series{}
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
				key := counter{f.word, l.Rank}
				s := all[file][key]
				if s == nil {
					s = &series{counter: key, least: f.n, most: -1, first: l.Number}
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

// add adds a number of the line with the given line number.
func (s *series) add(f figure, number int) {
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

// complete reports whether a series ends with a planned number n, or with n-1 if the series began with 0.
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
