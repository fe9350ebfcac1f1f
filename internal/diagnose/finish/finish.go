// Package finish finds out from all logs of a job together whether the job came to a good end after a line that
// looks like its failure. Package outlook finds this out from one log.
package finish

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Line is one line of a log.
type Line struct {
	File   string
	Number int // in its file
	Rank   int // that has printed it, or -1
	Text   string
	Mark   outlook.Mark
	Sign   bool // part of a sign of failure that ended the program; false for a sign that successful jobs also print
}

// Job has the logs of a job.
type Job struct {
	files map[string]*log
	// ends has, for each rank, the last line of each of its outputs.
	ends map[int][]Line
	// form is the form of the last line of every rank, or empty if they differ.
	form string
}

// log is one log. A log may have many signs of failure, so what depends only on its end is computed once.
type log struct {
	lines  []Line
	failed int // the index of the last line that tells of a failure, or -1
	// word is the number of the last line if it says that the work is done and no failure follows it, or -1.
	word int
	// again is the number of the line with which the program started again before it ended well, or -1.
	again int
	// less is the number of the line with which the job went on with fewer ranks before it ended well, or -1.
	less int
	plan plan
}

// New returns the job with these lines.
func New(lines []Line) *Job {
	j := &Job{files: map[string]*log{}, ends: map[int][]Line{}}
	type output struct {
		file string
		rank int
	}
	last := map[output]Line{}
	for _, l := range lines {
		if j.files[l.File] == nil {
			j.files[l.File] = &log{}
		}
		j.files[l.File].lines = append(j.files[l.File].lines, l)
	}
	for _, file := range j.files {
		slices.SortStableFunc(file.lines, func(a, b Line) int { return cmp.Compare(a.Number, b.Number) })
		file.read()
		for _, l := range file.lines {
			if l.Rank >= 0 && l.Mark&outlook.Aside == 0 {
				last[output{l.File, l.Rank}] = l
			}
		}
	}
	for o, l := range last {
		j.ends[o.rank] = append(j.ends[o.rank], l)
	}
	j.form = j.common()
	j.readPlans()
	return j
}

// common returns the form of a line which says that the work is done and with which an output of every rank ends. It
// returns "" if there is no such line.
func (j *Job) common() string {
	if len(j.ends) < 2 {
		return ""
	}
	for _, l := range j.ends[slices.Min(slices.Collect(maps.Keys(j.ends)))] {
		f := form(l.Text)
		if !good(l) || len(f) > maxForm || j.times(f) > len(j.ends) {
			continue
		}
		if all := func() bool {
			for _, ends := range j.ends {
				if !slices.ContainsFunc(ends, func(o Line) bool { return form(o.Text) == f }) {
					return false
				}
			}
			return true
		}(); all {
			return f
		}
	}
	return ""
}

// times returns how many lines of ranks have a form.
func (j *Job) times(f string) (n int) {
	for _, file := range j.files {
		for _, l := range file.lines {
			if l.Rank >= 0 && len(l.Text) < maxLine && form(l.Text) == f {
				n++
			}
		}
	}
	return n
}

// maxForm is the greatest length in bytes of the form of a last word.
const maxForm = 160

// AllEndWell reports whether the outputs of all ranks end with the same words, which say that their work is done.
// number is the number of a line in file, and rank is the rank that printed the line. If that rank had already printed
// these words before the line, AllEndWell returns false. If rank is -1, it returns false if any rank had printed them
// before.
func (j *Job) AllEndWell(file string, number, rank int) bool {
	if j.form == "" || rank >= 0 && j.ends[rank] == nil {
		return false
	}
	for r, ends := range j.ends {
		for _, l := range ends {
			if (r == rank || rank < 0) && l.File == file && l.Number < number && form(l.Text) == j.form {
				return false // the rank was done before the line
			}
		}
	}
	return true
}

// read computes what depends only on the end of the log.
func (l *log) read() {
	l.failed, l.word, l.again, l.less = -1, -1, -1, -1
	for i, line := range l.lines {
		if line.Sign || line.Mark&(outlook.Bad|outlook.Error) != 0 {
			l.failed = i
		}
	}
	before, lines := l.lines[:l.failed+1], l.lines[l.failed+1:]
	if at := lastWord(lines); at >= 0 {
		l.word = lines[at].Number
	}
	if at := restart(before, lines); at >= 0 {
		if rest := lines[at:]; advances(rest) >= several && (ended(rest) || highest(rest) >= highest(before) && highest(before) > 0 && len(rest) > several) {
			l.again = rest[0].Number
		}
	}
	for _, line := range slices.Backward(lines) {
		if len(line.Text) < maxLine && elastic.MatchString(line.Text) {
			l.less = line.Number
		}
	}
	if rest := l.after(l.less); l.less >= 0 && (advances(rest) < several || !ended(rest)) {
		l.less = -1
	}
}

// GoesOnWithLess reports whether the job went on with fewer or other ranks after a line of a log, and then ended well.
func (j *Job) GoesOnWithLess(file string, number int) bool {
	return j.files[file] != nil && j.files[file].less > number
}

// StartedAgain reports whether the program was started again after a line of a log, and then came to a good end.
func (j *Job) StartedAgain(file string, number int) bool {
	return j.files[file] != nil && j.files[file].again > number
}

// EndsWell reports whether a log shows that the work was done after a line that a rank has printed. The rank is -1 if
// it is not known. The last word of the log must say that the work is done, or the log must end with a table of
// results. No line after the given line may tell of a failure. At least n lines after it must count work, with the
// number of a step or the like. If the rank printed lines before the given line but none after it, although other ranks
// printed lines after it, its work is not done. If rank is -1, this applies to every rank, provided that at least two
// ranks printed lines after the given line.
func (j *Job) EndsWell(file string, number, rank, n int) bool {
	l := j.files[file]
	if l == nil || l.failed >= 0 && l.lines[l.failed].Number > number {
		return false
	}
	lines := l.after(number)
	if l.word <= number && !results(lines) || n > 0 && advances(lines) < n {
		return false
	}
	before, after := map[int]bool{}, map[int]bool{}
	for _, l := range l.lines[:len(l.lines)-len(lines)] {
		if !l.Sign && l.Number < number {
			before[l.Rank] = true
		}
	}
	for _, l := range lines {
		after[l.Rank] = true
	}
	delete(before, -1)
	delete(after, -1)
	if rank >= 0 {
		return !before[rank] || after[rank] || len(after) == 0
	}
	for r := range before {
		if !after[r] && len(after) > 1 {
			return false
		}
	}
	return true
}

// Concluded reports whether the logs that count work show that the job came to a good end. At least one of them must
// end with the word that the work is done, or show that the planned work is done. None of them may tell of a failure.
// Concluded ignores logs that do not count work.
func (j *Job) Concluded() bool {
	done := false
	for _, l := range j.files {
		if advances(l.lines) < several {
			continue
		}
		if l.failed >= 0 {
			return false
		}
		done = done || ended(l.lines) || l.done()
	}
	return done
}

// results reports whether the last lines are a table of results with a heading, in which no row says that nothing
// succeeded.
func results(lines []Line) bool {
	rows := 0
	for _, l := range slices.Backward(lines) {
		switch {
		case l.Mark&outlook.Aside != 0 || !strings.ContainsFunc(l.Text, unicode.IsLetter):
		case rows >= several-1 && heading.MatchString(l.Text):
			return true
		case nothing.MatchString(l.Text) || !row.MatchString(l.Text):
			return false
		default:
			rows++
		}
	}
	return false
}

var (
	heading = textmatch.New(`(?i)^\W*(?:\pL+ ){0,4}(?:results?|scores|metrics|benchmark)\b`)
	row     = textmatch.New(`^\W*\pL[^:=|]{0,60}(?:[:=|] *|  +)[-+]?\d[\d.,e+-]* ?\S{0,8}\s*\W*$`)
	nothing = textmatch.New(`(?i)^\W*(?:success\w*|passed|completed?|ok)\b[^:=|]{0,40}[:=|] *0\b`)
)

// elastic matches the words with which a launcher or program says that it goes on with fewer ranks, or with other ones.
var elastic = textmatch.New(`(?i)\b(?:roll(?:ing|ed)? back to|restor\w+) (?:the )?last commit|\bresett?ing with (?:size|\d+)|\bworld (?:size )?(?:changed|shr[aiu]nk|reduced|resized|is now)\b|\b(?:shr[aiu]nk|shrinking|scal(?:ing|ed) (?:down|in)|downsiz\w+|resiz\w+|reform\w*|re-?build(?:ing|s)?|rebuilt|reconfigur\w+) .{0,40}\b(?:to|with|from|communicator|ring|mesh|group|world)\b|\bMPIX_Comm_shrink|\b(?:continu\w+|going on|carr\w+ on|proceed\w*) with (?:only |the )?(?:\d+|remaining|surviving|other|rest)\b|\b(?:spare|stand-?by|replacement|substitute) (?:\w+ ){0,3}(?:took|takes|joined|joins|promoted|activated|replaces|in place)|\bre-?rendezvous|\bmembership changed`)

// after returns the lines after the line with a number.
func (l *log) after(number int) []Line {
	at, _ := slices.BinarySearchFunc(l.lines, number+1, func(l Line, n int) int { return cmp.Compare(l.Number, n) })
	return l.lines[at:]
}

const (
	several = 3   // lines that count work and thus show that work goes on
	opening = 40  // lines of a log in which a program says what it is
	maxLine = 300 // the length in bytes from which a line is not read
)

// restart returns the index of the first line after a failure with which the program started again, or -1. Such a line
// is like one that the program printed when it began, and not later.
func restart(before, lines []Line) int {
	first, routine := map[string]bool{}, map[string]int{}
	count := -1
	for i, l := range before {
		if count < 0 && l.Mark&outlook.Advance != 0 && i > 0 {
			count = i
		}
	}
	if count < 0 {
		return -1
	}
	for i, l := range before {
		f := form(l.Text)
		if !tells(l) || len(f) > maxForm {
			continue
		}
		if i < count {
			first[f] = true
		}
		if routine[f]++; i >= count+opening && routine[f] > several {
			delete(first, f)
		}
	}
	at, seen := -1, map[string]bool{}
	for i, l := range lines {
		if f := form(l.Text); tells(l) && first[f] {
			if at < 0 {
				at = i
			}
			seen[f] = true
		} else if l.Mark&outlook.Advance != 0 && at >= 0 {
			break
		}
	}
	if len(seen) < min(2, len(first)) || len(seen) == 0 {
		return -1
	}
	return at
}

// tells reports whether a line may be one of those that a program prints when it begins.
func tells(l Line) bool {
	return !l.Sign && l.Mark&(outlook.Aside|outlook.Error|outlook.Bad|outlook.Long|outlook.Advance) == 0 && strings.ContainsFunc(l.Text, func(c rune) bool { return c >= 'A' && c <= 'z' })
}

// good reports whether a line, as the last one of its log, says that the work is done.
func good(l Line) bool {
	return l.Mark&(outlook.Bad|outlook.Error|outlook.Aside) == 0 && (l.Mark&(outlook.Done|outlook.All) != 0 || outlook.Conclusive(l.Text))
}

// ended reports whether the last line that the job itself printed says that the work is done.
func ended(lines []Line) bool { return lastWord(lines) >= 0 }

// lastWord returns the index of the last line that the job itself printed, if the line says that the work is done. It
// returns -1 otherwise.
func lastWord(lines []Line) int {
	for i, l := range slices.Backward(lines) {
		if l.Mark&(outlook.Aside|outlook.Long) == 0 && (l.Mark&(outlook.Bad|outlook.Error) != 0 || !outlook.Warns(l.Text)) && (l.Mark&outlook.Epilogue == 0 || outlook.Conclusive(l.Text) && advances(lines) >= several) && !outlook.OfScript(l.Text) {
			if good(l) && !routine(lines, form(l.Text)) {
				return i
			}
			return -1
		}
	}
	return -1
}

// routine reports whether one rank has printed several lines of a form.
func routine(lines []Line, f string) bool {
	times := map[int]int{}
	for _, l := range lines {
		if len(l.Text) < maxLine && form(l.Text) == f {
			if times[l.Rank]++; times[l.Rank] > several {
				return true
			}
		}
	}
	return false
}

// advances returns how many of the lines count something.
func advances(lines []Line) (n int) {
	for _, l := range lines {
		if l.Mark&outlook.Advance != 0 {
			n++
		}
	}
	return n
}

// highest returns the highest number in the lines that count work, or 0. In each line, it uses the number after the
// first word that names a unit of work.
func highest(lines []Line) (n int) {
	for _, l := range lines {
		if l.Mark&outlook.Advance == 0 {
			continue
		}
		if m := counted.FindStringSubmatch(l.Text); m != nil {
			if k, err := strconv.Atoi(m[1]); err == nil {
				n = max(n, k)
			}
		}
	}
	return n
}

var counted = textmatch.New(`(?i)\b(?:step|iter(?:ation)?|epoch|cycle|batch|chunk|sweep|round|it|update|generation|frame|block|time ?step)s?\b["']?[ :=#]{0,8}(\d{1,9})\b`)

var (
	digits = textmatch.New(`\d+`)
	tag    = textmatch.New(`\[\d+(?:,\d+)?\](?:<std(?:out|err)>:?)?\s*$`)
)

// form returns a line with its numbers replaced by "#", and without a launcher's tag at its end.
func form(t string) string {
	return strings.TrimSpace(digits.ReplaceAllString(tag.ReplaceAllString(t, ""), "#"))
}
