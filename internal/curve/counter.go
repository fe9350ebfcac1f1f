package curve

import "github.com/gangrun/gangrun/internal/job"

// Counter combines the epochs and the steps of one rank into one count that never decreases. It gets the
// rank's reports in order. The zero Counter is ready to use.
//
// As long as the steps do not start again with each epoch, the count is the step. If they start again, and the
// number of steps of an epoch is known, the count is the number of steps of all earlier epochs plus the step.
// If that number is not known, the count is the sum of the last steps of all earlier epochs plus the step.
type Counter struct {
	begun  bool
	zero   bool  // the first epoch is epoch 0
	epoch  int64 // the last epoch
	of     int64 // the epoch in which step was reported
	step   int64 // the last step, as it was reported
	total  int64 // the largest total of the steps so far
	before int64 // the steps of all earlier epochs
	count  int64
	again  bool // the steps start again with each epoch
}

// Add adds the next report. It returns the report with Count and Restarts set. If the report has no epoch, Add
// sets its epoch to that of an earlier report.
func (c *Counter) Add(p job.Progress) job.Progress {
	first := !c.begun
	if first {
		c.begun, c.epoch, c.of, c.step = true, -1, -1, -1
	}
	if p.Epoch < 0 {
		p.Epoch = c.epoch
	}
	if first && p.Epoch == 0 {
		c.zero = true
	}
	switch {
	case p.ByEpoch && c.step < 0:
		c.count = max(c.count, p.Step)
	case p.ByEpoch, p.Total > 0 && p.Total < c.total: // the count of a bar outside or inside the bar that counts the steps
	case p.Total == 0 && c.total > 0 && p.Step < c.step && p.Epoch == c.of: // a count of something else than steps
	default:
		c.finer(p)
	}
	c.epoch = p.Epoch
	p.Count, p.Restarts = c.count, c.again
	return p
}

// finer adds a report of steps.
func (c *Counter) finer(p job.Progress) {
	if c.step < 0 && p.Step < c.count { // c.count has counted epochs until now
		c.before, c.again = c.count, true
	}
	if c.again && p.Epoch > c.of || p.Step < c.step && (p.Epoch != c.of || p.Step <= c.step/2) {
		c.again = true
		last := max(0, c.step)
		if p.Total > 0 && p.Total >= c.total {
			last = p.Total
		}
		c.before += last
		if known := p.Epoch; p.Total > 0 && known > 0 {
			if !c.zero {
				known--
			}
			c.before = max(c.before, known*p.Total)
		}
	}
	c.step, c.of, c.total = p.Step, p.Epoch, max(c.total, p.Total)
	if c.again {
		c.count = max(c.count, c.before+p.Step)
	} else {
		c.count = max(c.count, p.Step)
	}
}
