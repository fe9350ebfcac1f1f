package diagnose

import (
	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// reports finds what launchers and shells print about the end of processes.
func reports(text []string, covered []bool) []*sign {
	var signs []*sign
	for _, f := range endreport.Find(text, covered) {
		t := text[f.From]
		g := &sign{text: t, title: t, from: f.From, at: f.At, to: f.At + 1, report: &f.Report, discount: 0.1}
		if g.rule = rules.OfEnd(f.Signal, f.Code); g.rule == nil {
			continue
		}
		if f.First {
			g.discount = 0 // torchrun's own choice of the first failure
		}
		signs = append(signs, g)
	}
	return signs
}
