package main

import (
	"errors"
	"io"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// planReport is what plan prints as JSON. Where the gang does not fit, there is
// no placement, and Why says why.
type planReport struct {
	Placement []job.Rank    `json:"placement"`
	Level     *job.Locality `json:"level"`
	Cost      *planCost     `json:"cost"`
	Why       []string      `json:"why"`
	RunnerUp  *planOther    `json:"runner_up"`
	// Ever and Way are set where the gang does not fit, as in topology.NoPlacement.
	Ever *bool              `json:"ever,omitempty"`
	Way  []topology.Blocker `json:"way,omitempty"`
}

// planOther is the runner-up.
type planOther struct {
	Level     job.Locality `json:"level"`
	Cost      planCost     `json:"cost"`
	Placement []job.Rank   `json:"placement"`
}

// planCost is a topology.Cost in which no ring is null.
type planCost struct {
	topology.Cost
	Bottleneck *int `json:"bottleneck"`
}

func newPlanCost(c topology.Cost) planCost {
	if c.Bottleneck == topology.NoRing {
		return planCost{Cost: c}
	}
	return planCost{c, &c.Bottleneck}
}

// printPlanJSON prints a choice, or that there is no place; of other errors
// nothing is printed.
func printPlanJSON(w io.Writer, c topology.Choice, err error) error {
	var no *topology.NoPlacement
	switch {
	case errors.As(err, &no):
		return printJSON(w, planReport{Placement: []job.Rank{}, Why: []string{no.Text}, Ever: &no.Ever, Way: no.Way})
	case err != nil:
		return nil
	}
	cost := newPlanCost(c.Cost)
	r := planReport{Placement: c.Placement.Ranks, Level: &c.Level, Cost: &cost, Why: c.Why}
	if o := c.RunnerUp; o != nil {
		r.RunnerUp = &planOther{o.Level, newPlanCost(o.Cost), o.Placement.Ranks}
	}
	return printJSON(w, r)
}
