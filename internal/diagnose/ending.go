package diagnose

import (
	"cmp"
	"fmt"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

var dumped = map[bool]string{true: " and left a core"}

// end returns the suspect that follows from the rank's exit alone.
func (m *member) end() *suspect {
	e := m.exit
	s := &suspect{rank: m.rank, host: m.host, pid: e.PID, time: e.Time, order: m.order, exit: e, member: m, names: map[string]string{}}
	s.signal = e.Signal
	switch e.Status {
	case job.Lost, job.Unstarted:
		s.sign = &sign.Sign{Text: e.Text, Title: cmp.Or(e.Text, "no reason was given")}
		s.rule = rules.OfStatus(e.Status, e.Reason, e.Text)
		s.names = s.rule.Groups(e.Text)
	case job.Signalled:
		s.rule = rules.OfEnd(e.Signal, 0)
		s.names["signal"] = fmt.Sprintf("%s (signal %d)", job.SignalName(e.Signal), e.Signal)
	default:
		s.rule = rules.OfEnd(0, e.Code)
		switch n := e.Code - 128; {
		case e.Aborted:
			s.rule = rules.Named("mpi-abort")
			s.sign = &sign.Sign{Title: fmt.Sprintf("it called MPI_Abort and ended with code %d", e.Code)}
		case e.Fault != "":
			s.rule = rules.OfStatus(job.Exited, e.Reason, e.Fault)
			s.sign = &sign.Sign{Title: e.Fault}
		case n > 0:
			if r := rules.OfEnd(n, 0); r.Signature != "signal" {
				s.rule, s.signal = r, n
				s.names["signal"] = fmt.Sprintf("%s (code %d is 128 + %d)", job.SignalName(n), e.Code, n)
				s.confidence = -0.1
			}
		}
	}
	s.names["code"] = fmt.Sprint(e.Code)
	s.names["core"] = dumped[e.Core]
	s.confidence += s.rule.Confidence
	return s
}
