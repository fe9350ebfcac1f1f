package progress

import (
	"testing"
	"time"
)

// TestHistory checks that only a few steps of a rank and their times are kept, and that the newest step is among them.
func TestHistory(t *testing.T) {
	for _, every := range []time.Duration{time.Microsecond, time.Second} {
		var h history
		at := time.Unix(1e9, 0)
		const steps = 5000
		for i := range int64(steps) {
			at = at.Add(every)
			h.add(at, i)
		}
		last := h[len(h)-1]
		if len(h) > 2*maxHistory || last.Count != steps-1 || !last.Time.Equal(at) {
			t.Errorf("each %v: %d steps, the last is %+v", every, len(h), last)
		}
		for i := 1; i < len(h); i++ {
			if !h[i].Time.After(h[i-1].Time) || h[i].Count <= h[i-1].Count {
				t.Fatalf("each %v: %+v after %+v", every, h[i], h[i-1])
			}
		}
		if every == time.Second && len(h) < maxHistory {
			t.Errorf("%d steps are remembered, want %d or more", len(h), maxHistory)
		}
	}
	r := Rank{}
	if r.History() != nil {
		t.Error("a history without steps")
	}
}
