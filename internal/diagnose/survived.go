package diagnose

import (
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	// completion is a line with which a program says that its work is done.
	completion = textmatch.New(`(?i)\b(?:training|train|job|run|evaluation|eval|inference|benchmark|simulation|calculation|analysis|pipeline|pretraining|fine-?tuning|experiment|all(?: \w+)? (?:ranks?|tests?|steps?|epochs?|tasks?|checks?|done|files|jobs))\b.{0,40}\b(?:completed?|finished|done|succeeded|successful(?:ly)?|passed|ok|over)\b|` +
		`\b(?:completed|finished|exited|terminated|ended) (?:successfully|normally|cleanly|without errors?|ok|with (?:exit )?(?:code|status) 0)\b|\bsuccessfully (?:completed|finished|ended|trained|saved|wrote)|` +
		`^\W*(?:done|finished|success|completed|all done|bye|ok|job done|end of (?:run|job|program|simulation|output)|exiting(?: normally)?|the end)\W*$|` +
		`\b(?:saved?|saving|wrote|written|exported|uploaded|stored)\b.{0,80}\b(?:final|best|model|weights|checkpoint|results?|metrics|output|report|artifacts?|predictions)\b|` +
		`\b(?:final|best|model|weights|checkpoint|results?|metrics|output|report|predictions)\b.{0,60}\b(?:saved|written|exported|uploaded|stored)\b|` +
		`\b(?:final|best|test|val(?:idation)?|overall|total)[ _-](?:\w+[ _-]){0,2}(?:acc(?:uracy)?|loss|f1|score|perplexity|ppl|auc|rmse|mae|bleu|energy|error|reward|throughput|time|wall[ -]?time|elapsed)\b\W{0,4}[-+\d]|` +
		`\b(?:total|elapsed|wall|run|walltime|wall-clock)[ _-]?(?:time|clock)?\b.{0,20}[:=]?\s*\d|^\s*=+ .*\b\d+ passed\b.*=+\s*$|\b0 failed\b|^\s*no errors\s*$|\b(?:exit(?: |_)?(?:code|status)|rc|return code)\b\W{0,3}0\b|\bresult: pass|\bPASSED\b|^real\s+\d+m|` +
		`\bJOB DONE\b|\bcompleted at\b|\bfinished at\b|\bconvergence (?:has been )?(?:achieved|reached)\b|\bconverged\b`)
	// incomplete makes a line no such line.
	incomplete = textmatch.New(`(?i)\b(?:not|never|fail(?:ed|ure|s)?|error|errors|abort\w*|unable|cannot|can't|could not|couldn't|incomplete|unsuccessful\w*|without completing|before|until|killed|cancell?ed|traceback|timed? ?out|exceeded|terminating)\b`)
	zeroFailed = textmatch.New(`(?i)\b(?:0|no|zero|without) (?:fail\w*|errors?)\b|errors?\W{1,3}0\b`)
)

// completes reports whether a line says that work is done.
func completes(t string) bool {
	return len(t) < 400 && completion.MatchString(t) && !teardown.MatchString(t) && (!incomplete.MatchString(t) || zeroFailed.MatchString(t))
}

// Lines by which a program shows that it went on after a sign of failure.
const goneOn = 3

// survived reports whether the program that gave a sign of failure went on with its work, by what follows in
// the same log.
func (s *stream) survived(g *sign) bool {
	advanced := 0
	for i := g.to; i < len(s.text); i++ {
		t := s.text[i]
		if s.inSign(i) {
			continue
		}
		if completes(t) {
			return true
		}
		if len(t) < 400 && advance.MatchString(t) && !teardown.MatchString(t) && !announces(t) {
			if advanced++; advanced >= goneOn && !s.mixed {
				return true
			}
		}
	}
	return false
}

// inSign reports whether line i belongs to a sign.
func (s *stream) inSign(i int) bool {
	return slices.ContainsFunc(s.signs, func(g *sign) bool { return g.from <= i && i < g.to })
}

var mixedWords = textmatch.New(`\[rank\d+\]|\blocal_rank: \d|torch\.distributed\.(?:elastic|run|launch)|\bmpirun\b|\bmpiexec\b|\bprterun\b|^srun: |MPI_ABORT|\bMPI_Abort|BAD TERMINATION|\[Rank \d+\]|^\*{5}|\bworld[_ ]size\b\W{0,3}(?:[2-9]|\d\d)`)

// mixes reports whether a log of no known rank has the output of several processes.
func mixes(text []string) bool {
	return slices.ContainsFunc(text, func(t string) bool {
		return len(t) < 400 && strings.ContainsAny(t, "_[.:") && mixedWords.MatchString(t)
	})
}

// fromLogs returns the suspects of a member whose end is not known, where the ends of no ranks are known.
func (m *member) fromLogs() []*suspect {
	var all []*suspect
	for _, st := range m.streams {
		all = append(all, m.ofLog(st)...)
	}
	return all
}

// ofLog returns the suspects of one log.
func (m *member) ofLog(st *stream) []*suspect {
	var live []*sign
	for _, g := range st.signs {
		if g.weak && st.plain[len(st.text)]-st.plain[g.to] > weakTrail || st.survived(g) {
			continue
		}
		live = append(live, g)
	}
	var all []*suspect
	for _, g := range live {
		s := m.suspect(st, g)
		if g.report != nil {
			s.time = time.Time{} // the launcher learned of it later
		}
		all = append(all, s)
	}
	strongs := slices.ContainsFunc(all, func(s *suspect) bool { return !s.sign.weak })
	if strongs {
		all = slices.DeleteFunc(all, func(s *suspect) bool { return s.sign.weak })
	}
	if g := st.message; g != nil && !st.survived(g) {
		said := m.suspect(st, g)
		said.confidence -= 0.2
		if len(all) == 0 || !slices.ContainsFunc(all, func(s *suspect) bool { return !said.tellsMore(s) }) {
			return []*suspect{said}
		}
	}
	if st.mixed {
		return slices.DeleteFunc(all, func(s *suspect) bool { return repeated(s, all) })
	}
	var best *suspect
	for _, s := range all { // of several exceptions the last, of other signs the first
		if best == nil || s.merit() < best.merit() || s.merit() == best.merit() && python(s.sign) && !s.rule.Is(rules.Cascade) {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	return []*suspect{best}
}

// repeated reports whether an exception soon after a plain line says the same as the line.
func repeated(s *suspect, all []*suspect) bool {
	return s.sign.plain && slices.ContainsFunc(all, func(o *suspect) bool {
		return !o.sign.plain && o.rule.Signature == s.rule.Signature && o.sign.from >= s.sign.to && o.sign.from <= s.sign.to+adjacentLines
	})
}
