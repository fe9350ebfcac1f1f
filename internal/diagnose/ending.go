package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

func dumped(core bool) string {
	if core {
		return " and left a core"
	}
	return ""
}

// end is what the rank's exit says by itself.
func (m *member) end() *suspect {
	e := m.exit
	s := &suspect{rank: m.rank, host: m.host, pid: e.PID, time: e.Time, order: m.order, exit: e, member: m, names: map[string]string{}}
	s.signal = e.Signal
	switch e.Status {
	case job.Lost, job.Unstarted:
		s.sign = &sign{text: e.Text, title: cmp.Or(e.Text, "no reason was given")}
		s.rule = ruleOf(e.Status, e.Text)
		s.names = s.rule.groups(e.Text)
	case job.Signalled:
		s.rule = endRule(e.Signal, 0)
		s.names["signal"] = fmt.Sprintf("%s (signal %d)", job.SignalName(e.Signal), e.Signal)
	default:
		s.rule = endRule(0, e.Code)
		switch n := e.Code - 128; {
		case e.Aborted:
			s.rule = named("mpi-abort")
			s.sign = &sign{title: fmt.Sprintf("it called MPI_Abort and ended with code %d", e.Code)}
		case e.Fault != "":
			s.rule = named("zero-exit")
			s.sign = &sign{title: e.Fault}
			if r := ruleOf(job.Exited, e.Fault); len(r.Needles) > 0 {
				s.rule = r
			}
		case n > 0:
			if r := endRule(n, 0); r.Signature != "signal" {
				s.rule, s.signal = r, n
				s.names["signal"] = fmt.Sprintf("%s (code %d is 128 + %d)", job.SignalName(n), e.Code, n)
				s.confidence = -0.1
			}
		}
	}
	s.names["code"] = fmt.Sprint(e.Code)
	s.names["core"] = dumped(e.Core)
	s.confidence += s.rule.Confidence
	return s
}

// ruleOf returns the rule for an exit status with that explanation.
func ruleOf(status job.ExitStatus, why string) *Rule {
	lower := strings.ToLower(why)
	i := slices.IndexFunc(rules(), func(r *Rule) bool {
		return slices.Contains(r.Statuses, status) && (len(r.Needles) == 0 || slices.ContainsFunc(r.Needles, func(n string) bool { return strings.Contains(lower, n) })) &&
			(r.Match == nil || r.Match.MatchString(why)) && (r.Unless == nil || !r.Unless.MatchString(why))
	})
	return rules()[i]
}

// endRule returns the rule for a process that ended by a signal, or with a
// code when signal is 0.
func endRule(signal, code int) *Rule {
	for _, r := range rules() {
		if signal > 0 && slices.Contains(r.Signals, signal) || signal == 0 && slices.Contains(r.Codes, code) {
			return r
		}
	}
	if signal > 0 {
		return named("signal")
	}
	return named("exit-code")
}

// named returns the first rule with a signature.
func named(signature string) *Rule {
	i := slices.IndexFunc(rules(), func(r *Rule) bool { return r.Signature == signature })
	return rules()[i]
}
