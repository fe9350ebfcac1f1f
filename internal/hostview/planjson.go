package hostview

import (
	"errors"
	"io"

	"github.com/gangrun/gangrun/internal/view"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// planReport is what "gangrun plan" prints as JSON. If the gang does not fit, Placement is null, and Why has the
// reason.
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

// planOther is the second-best placement. Why says how it differs from the best.
type planOther struct {
	Level     job.Locality `json:"level"`
	Cost      planCost     `json:"cost"`
	Why       []string     `json:"why"`
	Placement []job.Rank   `json:"placement"`
}

// planCost is a topology.Cost in which null stands for a part that does not apply or is not known,
// because a number there would be misunderstood.
type planCost struct {
	Racks      int     `json:"racks"`
	Switches   int     `json:"switches"`
	Hosts      int     `json:"hosts"`
	Bottleneck *int    `json:"bottleneck"` // null: no host has two of its GPUs
	Slowest    *string `json:"slowest"`    // the link with the score Bottleneck; null if that is null or not known
	Links      *int    `json:"links"`      // null as Bottleneck is
	NIC        *int    `json:"nic"`        // null: the gang has at most one GPU, or no NIC near its GPUs is known
	Left       *int    `json:"left"`       // null: the gang has no GPUs
}

func newPlanCost(choice topology.Choice) planCost {
	c := choice.Cost
	j := planCost{Racks: c.Racks, Switches: c.Switches, Hosts: c.Hosts}
	if c.Bottleneck != topology.NoRing {
		j.Bottleneck, j.Links = &c.Bottleneck, &c.Links
		if link := string(topology.LinkOf(c.Bottleneck)); link != "" {
			j.Slowest = &link
		}
	}
	gpus, near := 0, false
	for _, r := range choice.Placement.Ranks {
		gpus += len(r.Devices)
		h := choice.Placement.Hosts[r.Node]
		near = near || len(topology.NICs(h, r.Devices)) > 0
	}
	if gpus > 0 {
		j.Left = &c.Left
	}
	if gpus > 1 && near {
		j.NIC = &c.NIC
	}
	return j
}

// PlanJSON prints the chosen placement as JSON. If err is a topology.NoPlacement, PlanJSON
// prints that instead. It prints nothing for other errors.
func PlanJSON(w io.Writer, c topology.Choice, err error) error {
	var no *topology.NoPlacement
	switch {
	case errors.As(err, &no):
		return view.JSON(w, planReport{Placement: []job.Rank{}, Why: []string{no.Text}, Ever: &no.Ever, Way: no.Way})
	case err != nil:
		return nil
	}
	cost := newPlanCost(c)
	r := planReport{Placement: c.Placement.Ranks, Level: &c.Level, Cost: &cost, Why: c.Why}
	if o := c.RunnerUp; o != nil {
		r.RunnerUp = &planOther{o.Level, newPlanCost(*o), append([]string{}, o.Why...), o.Placement.Ranks}
	}
	return view.JSON(w, r)
}
