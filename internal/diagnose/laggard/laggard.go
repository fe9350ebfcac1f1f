// Package laggard finds, from the lines of logs, the rank that the other ranks of a job waited for or lost contact
// with, or that called something else than they did.
package laggard

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// longLine is the length in bytes from which a line is too long to name the rank that others wait for.
const longLine = 2000

var (
	// absentRank matches the words that name a rank for which others wait.
	absentRank = textmatch.New(`(?i)\branks? \[?(\d{1,6})[\d, ]*\]?\b.{0,60}\b(?:did not|didn't|never|has not|have not|hasn't|not yet|failed to|missing|is missing|absent|lagging|behind|unresponsive|stuck|hung|silent|stalled|quiet|not (?:join|reach|enter|respond|arriv))|` +
		`(?i)\bwithout all (?:PEs|ranks|processes|tasks|images)\b.{0,12}\bmissing\W{1,3}(\d{1,6})|` +
		`(?i)\b(?:missing|waiting for|stalled|lagging|slow|absent|unresponsive|late|stuck|hung|hanging)\b.{0,30}\branks?\b\W{0,6}(\d{1,6})|` +
		`(?i)\branks? (\d{1,6})[\d, ]*\b.{0,20}\b(?:presumed|declared|assumed|considered|believed|marked) (?:dead|lost|gone|down|failed)\b|^Rank (\d{1,6}) -- GPU \d+ managed by process|/task:(\d{1,6})\b|\bwaiting (?:for|on) (\d{1,5})(?:$|[,;.)] ?)|\brank[ =:](\d{1,6})\b.{0,80}\b(?:state[ =][DT]\b|\[[DT]\]|stopped\b)|` +
		`(?i)\b(?:rank|worker|task|process)[ =:#]{1,2}(\d{1,6})\b.{0,40}\blast (?:heartbeat|seen|progress|report|message|update)\b.{0,20}\b(?:\d{3,}|[1-9]\d) ?(?:\.\d+ ?)?s`)
	// listHead matches the line above a list of such ranks.
	listHead = textmatch.New(`(?i)\b(?:stalled|missing|timed out|timed-out|unhealthy|dead|lost|late|failed|disconnected|unresponsive|not (?:reached|arrived|responding))\b.{0,60}\b(?:ranks|tasks|task names|workers|processes)\b[^:]{0,60}:\s*$|\b(?:ranks|tasks|workers|processes)\b.{0,60}\b(?:unhealthy|stalled|missing|timed out|dead|lost|not (?:reached|arrived|responding))\b[^:]{0,60}:\s*$`)
	listItem = textmatch.New(`^\s*(?:[-*] )?(?:\[?(\d{1,6})\]?: ?\[|\S*/?task[:=](\d{1,6})\b|(?:rank|worker|process|task)[ =:#]{0,2}(\d{1,6})\b|\[?(\d{1,6})(?:[\], ]+\d|[\], ]*$))`)
	// task matches the name of a task of JAX or TensorFlow, or of the ranks of a pod.
	task = textmatch.New(`/task:(\d{1,6})\b|\(ranks? (\d{1,6})(?:-\d+)?\)`)
	// others matches the part of a message that names the task which was the first at a barrier.
	others   = textmatch.New(`(?i)\bfirst task at the barrier\b[^.]*`)
	maybe    = textmatch.New(`most likely|\bmay be\b|can be caused`)
	enqueued = textmatch.New(`(?i)last enqueued (?:nccl )?work: (-?\d+)`)
	// waitsFor matches the number of the collective in which a rank waited.
	waitsFor  = textmatch.New(`(?:\[PG (?:ID )?(\d+)[^\]]*\] )?(?:Watchdog caught|\[(?:PG[^\]]* )?Rank \d+\] Watchdog caught).{0,60}SeqNum=(\d{1,9})`)
	groupRank = textmatch.New(`\[(?:PG (?:ID )?\d+ (?:PG GUID \S+ )?)?Rank (\d{1,6})\]`)
	stepCount = textmatch.New(`(?i)\b(?:step|iter(?:ation)?|it|batch|global_step|epoch|pass|query|partition|chunk|block|cycle|sweep)s?\b["']?[ :=#(\[]{0,3}(\d{1,9})`)
	joined    = textmatch.New(`\b(\d{1,5})/(\d{1,5}) (?:clients|workers|ranks) joined`)
)

// Group returns the rank in the tag of a line that PyTorch's watchdog has written, as in "[PG ID 0 PG GUID 0 Rank 3]",
// or -1. It is the rank of the process that has written the line.
func Group(t string) int { return first(groupRank.FindStringSubmatch(t)) }

// first returns, as a number, the first group of a match that is not empty. It returns -1 if there is none.
func first(m []string) int {
	for i := 1; i < len(m); i++ {
		if m[i] != "" {
			return logtext.Number(m[i])
		}
	}
	return -1
}

// absent returns the rank for which others wait according to line i, or -1.
func absent(text []string, i int) int {
	t := text[i]
	if len(t) > longLine || maybe.MatchString(t) {
		return -1
	}
	for k := i - 1; k >= max(0, i-8); k-- {
		if strings.HasSuffix(strings.TrimRight(text[k], " "), ":") && listHead.MatchString(text[k]) {
			if r := first(listItem.FindStringSubmatch(t)); r >= 0 {
				return r
			}
		}
		if strings.TrimSpace(text[k]) == "" {
			break
		}
	}
	if strings.Contains(t, "irst task") {
		t = others.ReplaceAllString(t, "")
	}
	return first(absentRank.FindStringSubmatch(t))
}

// Listed looks at text[from:to] and at the lines below. It returns the rank that they say was lost or was told to end,
// or -1.
func Listed(text []string, from, to int) int {
	for k := from; k < to; k++ {
		if !listHead.MatchString(text[k]) {
			continue
		}
		for _, t := range text[k+1 : min(len(text), k+4)] {
			if r := first(listItem.FindStringSubmatch(t)); r >= 0 {
				return r
			}
		}
	}
	for i := from; i < min(len(text), to+nearby); i++ {
		if r := first(presumed.FindStringSubmatch(text[i])); r >= 0 {
			return r
		}
	}
	for _, t := range text[from:min(len(text), to+below)] {
		if r := first(task.FindStringSubmatch(t)); r >= 0 {
			return r
		}
	}
	return -1
}

// presumed matches the words with which a launcher says that it considers ranks lost.
var presumed = textmatch.New(`(?i)\b(?:ranks?|tasks?|workers?) (\d{1,6})[\d, and]*\b.{0,20}\b(?:presumed|declared|assumed|considered|believed|marked|are|is) (?:as )?(?:dead|lost|gone|down|failed)\b`)

// nearby is how many lines below a sign may match presumed.
const nearby = 10

// below is how many lines below a sign may match task.
const below = 3

// reach is how many lines above or below a sign may name the rank for which others wait.
const reach = 12

// Near looks at text[from:to] and at the lines around it. It returns the rank that others wait for according to these
// lines, or -1.
func Near(text []string, from, to int) int {
	for _, part := range [][2]int{{from, to}, {to, min(len(text), to+reach)}, {max(0, from-reach), from}} {
		for i := part[0]; i < part[1]; i++ {
			if r := absent(text, i); r >= 0 {
				return r
			}
		}
	}
	return -1
}

// Find returns the rank for which the others waited when they gave up, or -1 if the logs do not show it. waiting has
// the ranks that waited. ended has the ranks whose end a launcher reports. The logs may show it in several ways, and
// Find takes the first of these: the one that a report names; the one that is behind in the count of its collectives;
// the only one that did not wait; the only one that has printed nothing; the only one whose end no launcher reports;
// the only one that did not print what all others printed; the one that made the fewest steps.
func Find(logs []roster.Log, census *roster.Census, waiting, ended map[int]bool) int {
	behind, seen, groups := map[int]int{}, map[int]int{}, map[string]bool{}
	for _, l := range logs {
		for i, t := range l.Text {
			if r := absent(l.Text, i); r >= 0 {
				return r
			}
			c, n := enqueued.FindStringSubmatch(t), waitsFor.FindStringSubmatch(t)
			if c == nil && n == nil {
				continue
			}
			rank := l.Rank
			if rank < 0 {
				rank = Group(l.Lines[i].Text)
			}
			if rank >= 0 && c != nil {
				behind[rank] = logtext.Number(c[1])
			}
			if rank >= 0 && n != nil {
				seen[rank], groups[n[1]] = logtext.Number(n[2]), true
			}
		}
	}
	for _, find := range []func() int{
		func() int { return onlyLowest(behind) },
		func() int {
			if len(groups) > 1 {
				return -1 // the collectives of each group of ranks have numbers of their own
			}
			return onlyLowest(seen)
		},
		func() int { return onlyMissing(census, waiting) },
		func() int { return notHeard(logs) },
		func() int { return notReported(census, ended) },
		func() int { return notReported(census, waiting) },
	} {
		if r := find(); r >= 0 {
			return r
		}
	}
	if r := Silent(logs); r >= 0 {
		return r
	}
	return FewestSteps(logs, clearlyBehind)
}

// clearlyBehind is how many steps one of only two ranks must be behind the other. A smaller difference may only mean
// that the rank is slow.
const clearlyBehind = 3

// Behind returns the rank with the fewest steps, because a rank that has failed makes no further steps. It returns -1
// if no rank has fewer steps than all others, or if failed is false. failed says whether it is known that a rank has
// failed.
func Behind(logs []roster.Log, failed bool) int {
	if !failed {
		return -1
	}
	return FewestSteps(logs, 1)
}

// FewestSteps returns the rank that has counted fewer steps than any other, or -1. If there are only two ranks, the
// difference must be at least gap.
func FewestSteps(logs []roster.Log, gap int) int {
	steps := map[int]int{}
	for _, l := range logs {
		for i, t := range l.Text {
			c := stepCount.FindStringSubmatch(t)
			if len(t) >= 400 || c == nil {
				continue
			}
			if rank := l.At(i); rank >= 0 {
				steps[rank] = max(steps[rank], logtext.Number(c[1]))
			}
		}
	}
	if len(steps) != 2 {
		return onlyLowest(steps)
	}
	lowest, most := -1, 0
	for r, n := range steps {
		if lowest < 0 || n < steps[lowest] {
			lowest = r
		}
		most = max(most, n)
	}
	if most-steps[lowest] < gap {
		return -1
	}
	return lowest
}

// onlyLowest returns the key with the lowest value. It returns -1 if several keys have that value, or if there are
// fewer than three keys.
func onlyLowest(values map[int]int) int {
	best, ties := -1, 0
	for k, v := range values {
		switch {
		case best < 0 || v < values[best]:
			best, ties = k, 0
		case v == values[best]:
			ties++
		}
	}
	if ties > 0 || len(values) <= 2 {
		return -1
	}
	return best
}

// notHeard returns the only rank of the job that has printed nothing, or -1. It takes the number of ranks from a report
// of a rendezvous that only one of them has not joined.
func notHeard(logs []roster.Log) int {
	heard, size := map[int]bool{}, 0
	for _, l := range logs {
		heard[l.Rank] = true
		for i, t := range l.Text {
			if j := joined.FindStringSubmatch(t); j != nil && logtext.Number(j[1])+1 == logtext.Number(j[2]) {
				size = logtext.Number(j[2])
			}
			if r := l.At(i); l.Rank < 0 && r >= 0 {
				heard[r] = true
			}
		}
	}
	return onlyOne(size, func(r int) bool { return heard[r] })
}

// notReported returns the only rank of the job that is not in ended, or -1. It returns -1 if ended has fewer than two
// ranks.
func notReported(census *roster.Census, ended map[int]bool) int {
	if len(ended) < 2 {
		return -1
	}
	heard := census.All()
	return onlyOne(census.Heard(), func(r int) bool { return !heard[r] || ended[r] })
}

// onlyMissing returns the only rank of the job that did not wait, or -1.
func onlyMissing(census *roster.Census, waiting map[int]bool) int {
	if len(waiting) == 0 {
		return -1
	}
	size := census.Size()
	if size < 2 {
		size = census.Heard()
	}
	for r := range waiting {
		size = max(size, r+1)
	}
	return onlyOne(size, func(r int) bool { return waiting[r] })
}

// onlyOne returns the only rank below size for which is returns false. It returns -1 if there is none or several.
func onlyOne(size int, is func(int) bool) int {
	only := -1
	for r := range size {
		if is(r) {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = r
	}
	return only
}

// slowRank matches the words that name a slow rank.
var slowRank = textmatch.New(`(?i)\branks? ?[=:#]? ?(\d{1,6})\b[^\d]{0,20}(?:is|was|runs|takes|took)?\b.{0,40}\b(?:slow\w*|straggl\w*|lag\w*|behind)|\b(?:slow\w*|straggl\w*|lagging|evict\w*)\b[^\[\]]{0,40}?\branks?[ =:#]{0,3}(\d{1,6})`)

// slowWord matches a word for slowness.
var slowWord = textmatch.New(`(?i)\b(?:slow|straggl|lagg|evict|behind\b)`)

// Slow returns the rank that a report calls slow, or -1. A report may begin with the rank that has written it. The slow
// rank is then another one that the report names.
func Slow(t string) int {
	if i := strings.Index(t, "] "); i > 0 && i < 80 { // the line begins with the tag of the rank that reports
		t = t[i+2:]
	}
	if at := slowWord.FindStringIndex(t); at != nil {
		before := t[:at[0]]
		for next := namedRank.FindStringIndex(before); next != nil && namedRank.MatchString(before[next[1]:]); next = namedRank.FindStringIndex(before) {
			before = before[next[1]:] // of several ranks before the word, the last counts
		}
		t = before + t[at[0]:]
	}
	return first(slowRank.FindStringSubmatch(t))
}

// lostPeer matches the words that name a rank which another rank has lost.
var lostPeer = textmatch.New(`(?i)\b(?:peer|rank|worker)[ #:=]{1,2}(\d{1,6})\b[^:\d]{0,20}\b(?:closed|lost|died|disconnected|gone|went away|reset|terminated|hung up|exited)|\b(?:lost|closed|reset|broken|no) (?:\w+ ){0,3}(?:to|with|from|by) (?:peer|rank|worker)[ #:=]{1,2}(\d{1,6})\b`)

// lostBy returns the rank that a program has lost according to a line, and the program's own rank if the line names it.
// Unknown ranks are -1.
func lostBy(t string) (lost, loser int) {
	lost = first(lostPeer.FindStringSubmatch(t))
	loser = first(namedRank.FindStringSubmatch(t))
	if loser == lost {
		loser = -1
	}
	return lost, loser
}

// Lost returns the only rank that others say they have lost and that has itself lost none, or -1.
func Lost(logs []roster.Log) int {
	lost, losers := map[int]bool{}, map[int]bool{}
	for _, l := range logs {
		for _, t := range l.Text {
			if len(t) > longLine {
				continue
			}
			if r, loser := lostBy(t); r >= 0 {
				lost[r], losers[max(l.Rank, loser)] = true, true
			}
		}
	}
	only := -1
	for r := range lost {
		if losers[r] {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = r
	}
	return only
}

// namedRank matches the name of a rank.
var namedRank = textmatch.New(`(?i)\brank ?(\d{1,6})\b`)

// Odd returns the rank that differs from the others, according to the messages with which ranks compare what they and
// others do. It is the rank that most messages name. If all messages together name only two ranks, and each as often as
// the other, it is the one that is named last. Odd returns -1 if no rank differs, or if a message does not name exactly
// two ranks.
func Odd(messages []string) int {
	count, last := map[int]int{}, -1
	for _, t := range messages {
		seen := map[int]bool{}
		for {
			at := namedRank.FindStringIndex(t)
			if at == nil {
				break
			}
			r := first(namedRank.FindStringSubmatch(t[at[0]:at[1]]))
			if !seen[r] {
				count[r]++
				seen[r] = true
			}
			if last = r; len(seen) > 2 {
				return -1
			}
			t = t[at[1]:]
		}
		if len(seen) < 2 {
			return -1
		}
	}
	best, ties := -1, 0
	for r, n := range count {
		switch {
		case best < 0 || n > count[best]:
			best, ties = r, 0
		case n == count[best]:
			ties++
		}
	}
	if ties > 0 && len(count) == 2 {
		return last
	}
	if ties > 0 {
		return -1
	}
	return best
}

// digits matches the numbers of a line.
var digits = textmatch.New(`\d+`)

// Silent returns the only rank that did not print what all others printed, or -1. It compares lines of several ranks
// that are the same but for the rank's number.
func Silent(logs []roster.Log) int {
	printed, heard := map[string]map[int]bool{}, map[int]bool{}
	for _, l := range logs {
		for i, t := range l.Text {
			if len(t) > 400 {
				continue
			}
			rank := l.At(i)
			if rank < 0 {
				continue
			}
			heard[rank] = true
			form := digits.ReplaceAllString(t, "#")
			if printed[form] == nil {
				printed[form] = map[int]bool{}
			}
			printed[form][rank] = true
		}
	}
	silent := -1
	for _, ranks := range printed {
		if len(ranks) != len(heard)-1 || len(ranks) < 2 {
			continue
		}
		for r := range heard {
			if ranks[r] {
				continue
			}
			if silent >= 0 && silent != r {
				return -1
			}
			silent = r
		}
	}
	return silent
}
