package resumable

import (
	"sync"
	"time"
)

// deadline is a time at which waiting for a condition ends. The lock of the condition guards it.
type deadline struct {
	passed bool
	timer  *time.Timer
}

// set sets the deadline to t. At t, or at once if t has passed, it wakes those who wait for cond.
// The zero time is no deadline.
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
