package logtext

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Limits on where a line may mark which rank printed it.
const (
	markBytes  = 200 // a mark is within so many bytes from the beginning of a line
	jsonBytes  = 600 // the same for a line in JSON
	markDigits = 5   // a number has at most so many digits
	gapBytes   = 4   // a word and its number are at most so many bytes apart
)

// mark is a word of a line with the number after it. The program may use the word for its ranks, or for something else
// that it counts.
type mark struct {
	key    string // the word, and the characters between it and the number
	number int
	end    int  // the index of the byte after the number
	head   bool // only the time and the level of the line stand before the mark
}

// counters has words for what programs count other than their ranks.
var counters = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`step steps epoch epochs iter iters iteration iterations it its batch batches attempt attempts retry retries try
		line lines layer layers block blocks chunk chunks pass passes cycle cycles sweep sweeps query queries level version v port pid tid size of in at to
		from with time t loss lr day code status signal exit number n count took after for was is and eta s ms sec secs seconds min mins minutes hours
		jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun round rounds window superstep doc docs example examples sample
		samples record records row rows item items file files utterance tick frame frames generation gen episode update updates restart timestep
		nstep ntime stage phase errno error err warning rc ret retval score acc top mem rss total page pages object key fetched read wrote written
		processed done progress cell cells point points month year hour week version release gcc cuda python torch nccl sm x y z k c b d f g h j l m o u e
		iteration= max mean median avg std var mse mae auc bleu wer cer ppl f1 ndcg recall tokens token seq len length depth width height dim dims rev commit job jobs run
		array dimension channel channels vlan eth ib mlx lane thread threads core cores cpu cpus envs walkers seed fold reader gw dn cn nid part parts
		executor executors goroutine rung bucket param group`) {
		m[w] = true
	}
	return m
}()

// members has words for ranks. Lines with such a word need not alternate between ranks.
var members = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`rank ranks mpirank r worker workers replica task tasks process proc procs pe chain trial slot member
		client actor trainer learner instance container peer node host tp dp child`) {
		m[w] = true
	}
	return m
}()

// pieces has the counters whose number may be that of a rank if both stand in brackets.
var pieces = map[string]bool{"part": true, "block": true, "chunk": true, "executor": true, "thread": true, "reader": true, "bucket": true, "group": true, "l": true, "core": true, "cpu": true}

// levels has words for the level of a line. A number after any of them is that of a rank.
var levels = []string{"i", "w", "info", "warn", "warning", "debug", "critical", "fatal"}

// marks appends to all the marks at the beginning of a line.
func marks(t string, all []mark) []mark {
	limit := markBytes
	if strings.HasPrefix(t, "{") {
		limit = jsonBytes
	}
	t = t[:min(len(t), limit)]
	for i := 0; i < len(t); i++ {
		if t[i] < '0' || t[i] > '9' {
			continue
		}
		from := i
		for i < len(t) && t[i] >= '0' && t[i] <= '9' {
			i++
		}
		if i-from > markDigits || i < len(t) && (letter(t[i]) || t[i] == '_' || t[i] == '%' || (t[i] == '.' || t[i] == '/' || t[i] == ':') && i+1 < len(t) && t[i+1] >= '0' && t[i+1] <= '9') {
			continue
		}
		gap := from
		for gap > 0 && from-gap < gapBytes && strings.IndexByte(" _-.:=#[(\"'", t[gap-1]) >= 0 {
			gap--
		}
		word := gap
		for word > 0 && letter(t[word-1]) {
			word--
		}
		if word == gap {
			continue
		}
		w := strings.ToLower(t[word:gap])
		if slices.Contains(levels, w) {
			w = "info"
		}
		bracketed := word > 0 && t[word-1] == '[' && i < len(t) && t[i] == ']' && pieces[w]
		if counters[w] && !bracketed || len(w) > 30 {
			continue
		}
		all = append(all, mark{w + t[gap:from], Number(t[from:i]), i, i < len(t) && (strings.IndexByte(":|]>)", t[i]) >= 0 || t[i] == ' ' && (from == gap+1 && t[gap] != ' ' || i+1 < len(t) && strings.IndexByte("|>-", t[i+1]) >= 0)) && head(t[:word])})
	}
	return all
}

// stampWord matches a word that may stand before the mark of a line: a part of the time, a level, or a name of the
// process.
var stampWord = textmatch.New(`(?i)^(?:[IWEFT]|info|warn|warning|error|debug|critical|fatal|trace|notice|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|utc|z|t|main|pid)?$`)

// head reports whether a text has no other words than those of the time and the level of a line.
func head(t string) bool {
	for w := range strings.FieldsFuncSeq(t, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') }) {
		if !stampWord.MatchString(w) {
			return false
		}
	}
	return true
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// lane is what is known of the lines with one key. turns is how often a number is lower than the one before.
type lane struct {
	lines, turns, last int
	heads              int         // the number of lines in which only the time and the level stand before the mark
	count              map[int]int // the number of lines by the number of the mark
}

// word returns the word of a key.
func word(key string) string { return strings.TrimRight(key, " _-.:=#[(\"'") }

// ranks reports whether the numbers of a key are those of ranks: there are several, they begin with 0 or 1, they recur,
// and the lines alternate between them. lines is the number of lines of the log.
func (l *lane) ranks(key string, lines int) bool {
	n, lowest, highest, again := len(l.count), 1<<30, 0, 0
	for r, lines := range l.count {
		lowest, highest = min(lowest, r), max(highest, r)
		if lines > 1 {
			again++
		}
	}
	member := members[word(key)]
	switch {
	// Nearly all lines begin with a mark. Some ranks may be missing.
	case n > 1 && again > 1 && l.turns >= n && most(l.heads, lines):
		return true
	case n < 2, lowest > 1, again < 2, l.lines < 2*n-1:
		return false
	case member:
		return highest <= 2*n
	}
	turns := n
	if l.heads == l.lines && highest-lowest+1 == n {
		turns = 1
	}
	return highest-lowest+1 <= n+1 && again >= n-1 && l.turns >= turns
}

// Lanes returns, for each line of a log, the number of the rank that the line marks as its own, or -1. It learns from
// the log with which word the program marks its lines. It returns nil if the program does not mark them.
func Lanes(text []string) []int {
	best, ranks := laneKey(text), make([]int, len(text))
	if best == "" {
		all := openings(text)
		for i, b := range all {
			if ranks[i] = b.number; b.shape == "" {
				ranks[i] = -1
			}
		}
		if all == nil {
			return nil
		}
		return ranks
	}
	var buf []mark
	for i, t := range text {
		ranks[i] = -1
		buf = marks(t, buf[:0])
		for _, m := range buf {
			if m.key == best {
				ranks[i] = m.number
				break
			}
		}
	}
	return ranks
}

// laneKey returns the key of the marks with which a program marks the lines of its ranks, or "".
func laneKey(text []string) string {
	found := map[string]*lane{}
	var buf []mark
	lines := 0
	for _, t := range text {
		if t != "" && !untagged(t) {
			lines++
		}
		buf = marks(t, buf[:0])
		for i, m := range buf {
			if slices.ContainsFunc(buf[:i], func(o mark) bool { return o.key == m.key }) {
				continue
			}
			l := found[m.key]
			if l == nil {
				l = &lane{count: map[int]int{}}
				found[m.key] = l
			}
			if l.lines > 0 && m.number < l.last {
				l.turns++
			}
			if m.head {
				l.heads++
			}
			l.lines, l.last = l.lines+1, m.number
			l.count[m.number]++
		}
	}
	best := ""
	for key, l := range found {
		// Any process of a pool may do any part of the work.
		if strings.HasSuffix(word(key), "poolworker") && l.lines > 1 {
			return ""
		}
		if !l.ranks(key, lines) {
			continue
		}
		switch rank, other := word(key) == "rank", word(best) == "rank"; {
		case best == "", rank && !other:
			best = key
		case !rank && other:
		case l.lines > found[best].lines, l.lines == found[best].lines && key < best:
			best = key
		}
	}
	return best
}
