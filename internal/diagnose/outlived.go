package diagnose

import (
	"slices"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/diagnose/finish"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// asOne gives each stream a function that returns the whole job. The job is put together when it is first needed.
func asOne(all []*stream) {
	whole := sync.OnceValue(func() *finish.Job {
		var lines []finish.Line
		for _, st := range all {
			marks, lanes := st.marks(), st.ranksOf()
			first := len(lines)
			for i, t := range st.text {
				l := finish.Line{File: st.lines[i].File, Number: st.lines[i].Line, Rank: st.rank, Text: t, Mark: marks[i]}
				if lanes != nil {
					l.Rank = lanes[i]
				}
				lines = append(lines, l)
			}
			for _, g := range st.Signs {
				for i := g.From; i < g.To && !g.Weak && !st.excused(g) && !g.Caught(st.text); i++ {
					lines[first+i].Sign = true
				}
			}
		}
		return finish.New(lines)
	})
	for _, st := range all {
		st.whole = whole
	}
}

// outlived reports whether the logs of the whole job show that the job ended well after a sign of failure.
func (s *stream) outlived(g *sign.Sign) bool {
	if s.whole == nil || s.lines[g.At].Line == 0 {
		return false
	}
	file, number := s.lines[g.From].File, s.lines[g.To-1].Line
	owner := s.rank
	if owner < 0 {
		owner = s.where(g).Marked()
	}
	ended := slices.ContainsFunc(s.beside, func(o *stream) bool { e := o.reportedEnd(); return e >= 0 && o.lines[e].Line > number })
	if s.whole().StartedAgain(file, number) || s.whole().Past(file, number, owner, g.Event(ended)) {
		return true
	}
	if g.Rule.Is(rule.Verdict) {
		return false
	}
	crashed := g.Native || g.Report != nil || (&suspect{rule: g.Rule}).crashed()
	helper := g.Where != "" && strings.HasPrefix(g.Where, "<") && s.buffered(g)
	if !crashed && (g.Plain || g.Class == rule.Message || g.Caught(s.text) || helper || s.excused(g)) && !outlook.Fatal(g.Title) && s.whole().EndsWell(file, number, owner, s.workAfter(g, helper)) {
		return true
	}
	if !crashed && (g.Plain || g.Class == rule.Message) && slices.ContainsFunc(s.text[g.From:min(len(s.text), g.To+1)], outlook.Recovers) && s.whole().Concluded() {
		return true
	}
	return s.whole().GoesOnWithLess(file, number) || !crashed && s.whole().AllEndWell(file, number, owner) &&
		!slices.ContainsFunc(s.beside, func(o *stream) bool { return o.reportedEnd() >= 0 || o.log().Failed() })
}

// excused reports whether the line after an exception says that the program goes on in another way.
func (s *stream) excused(g *sign.Sign) bool {
	return !g.Plain && !g.Native && g.Report == nil && g.Class != rule.Message && g.To < len(s.text) && s.marks()[g.To]&(outlook.Bad|outlook.Error) == 0 && outlook.Recovers(s.text[g.To])
}

// workAfter returns how many lines must count work after a sign before a good last word of the job outweighs the sign.
// A program that says that it stops must count more work than a program that only reports an error.
func (s *stream) workAfter(g *sign.Sign, helper bool) int {
	switch {
	case outlook.Stops(g.Title) || outlook.Ends(g.Title) && !outlook.Recovers(g.Title), helper:
		return goneOn
	case g.Weak || g.Rule.Is(rule.Generic) || g.Rule.Signature == rules.ProgramError || g.Rule.Category == job.LaunchError || g.Caught(s.text), outlook.Logged(g.Title), s.excused(g):
		return 0
	}
	return 1
}
