package sign

import (
	"github.com/gangrun/gangrun/internal/diagnose/finish"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
)

// Event returns what is known of a sign. ended is true if a launcher reports afterwards that a rank failed.
func (g *Sign) Event(ended bool) finish.Event {
	farewell := g.Report == nil && (outlook.Farewell(g.Title) || outlook.Farewell(g.Where) || outlook.Farewell(g.Context))
	return finish.Event{Category: g.Rule.Category, Verdict: g.Rule.Is(rule.Verdict), Stopped: g.Report != nil && g.Report.Signal == 15, Farewell: farewell, Ended: ended}
}
