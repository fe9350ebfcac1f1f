package output

import (
	"testing"
	"time"
)

// TestPace checks that Pump pauses between reads if a stream has many reads a second and few bytes, and only then.
// Pump goes on pausing such a stream as long as new data arrives soon after each pause.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		gap   time.Duration // time between the reads if Pump does not pause
		bytes int
		want  time.Duration
	}{
		"600 lines a second":    {time.Second / 600, 80, pacePause},
		"a progress bar":        {time.Second / 10, 80, 0},
		"100 lines a second":    {time.Second / 100, 80, 0},
		"a loop without pauses": {20 * time.Microsecond, 80, 0},
		"large pieces":          {time.Second / 600, 4096, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			p := pace{began: now}
			waiting := 0.0 // bytes that can be read
			var pause time.Duration
			for range 10 * paceReads {
				wait := max(c.gap, pause)
				now = now.Add(wait)
				waiting += float64(c.bytes) * wait.Seconds() / c.gap.Seconds()
				pause = p.next(now, int(waiting))
				waiting = 0
			}
			if pause != c.want {
				t.Errorf("a pause of %s, want %s", pause, c.want)
			}
		})
	}
}
