package resumable

import (
	"sync"
	"time"
)

// deadline is a point in time at which waiting on a condition ends. The
// condition's lock guards it.
type deadline struct {
	passed bool
	timer  *time.Timer
}

// set moves the deadline to t and wakes who waits on cond, now where t has
// passed, else then. The zero time is no deadline.
func (d *deadline) set(t time.Time, cond *sync.Cond) {
	d.clear()
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.passed = true
		cond.Broadcast()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		cond.L.Lock()
		defer cond.L.Unlock()
		if d.timer == timer {
			d.passed = true
			cond.Broadcast()
		}
	})
	d.timer = timer
}

func (d *deadline) clear() {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer, d.passed = nil, false
}
