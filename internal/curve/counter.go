package curve

import "github.com/gangrun/gangrun/internal/job"

// Counter combines the epochs and the steps of one rank into one count, which never goes back. It
// takes what the rank reports in order. The zero Counter is ready to use.
//
// As long as the steps do not begin again with an epoch, the count is the step. If they do, and the
// number of steps of an epoch is known, it is that of all epochs before plus the step; otherwise the
// last step of each earlier epoch is added.
type Counter struct {
	begun  bool
	zero   bool  // the first epoch has the number 0
	epoch  int64 // the last one
	of     int64 // the epoch of step
	step   int64 // the last one of the finest count
	total  int64 // of the finest count: the largest total so far
	before int64 // steps of the epochs before
	count  int64
	again  bool // the steps begin again with each epoch
}

// Add takes the next report, and returns it with Count, Restarts and, if a line before had it, the
// epoch.
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
	case p.ByEpoch, p.Total > 0 && p.Total < c.total: // a bar inside or outside of the finest one
	case p.Total == 0 && c.total > 0 && p.Step < c.step && p.Epoch == c.of: // a count of something else
	default:
		c.finer(p)
	}
	c.epoch = p.Epoch
	p.Count, p.Restarts = c.count, c.again
	return p
}

// finer takes a report of the finest count.
func (c *Counter) finer(p job.Progress) {
	if c.step < 0 && p.Step < c.count { // until now, it was that of epochs
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
