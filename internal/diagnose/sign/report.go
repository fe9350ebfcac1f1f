package sign

import (
	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// reports finds what launchers and shells print about the end of processes.
func reports(text []string, covered []bool) []*Sign {
	var signs []*Sign
	for _, f := range endreport.Find(text, covered) {
		t := text[f.From]
		if outlook.Helper(t) {
			continue
		}
		g := &Sign{Text: t, Title: t, From: f.From, At: f.At, To: f.At + 1, Report: &f.Report, Discount: 0.1}
		if g.Rule = rules.OfEnd(f.Signal, f.Code); g.Rule == nil {
			continue
		}
		if f.First {
			g.Discount = 0 // torchrun itself reports this failure as the first
		}
		signs = append(signs, g)
	}
	return signs
}
