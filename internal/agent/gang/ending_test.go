package gang

import (
	"testing"
	"time"
)

// TestSooner: a second request to end never extends the grace period.
func TestSooner(t *testing.T) {
	before := time.Now()
	first := sooner(time.Time{}, time.Hour)
	if first.Before(before.Add(time.Hour)) || first.After(time.Now().Add(time.Hour)) {
		t.Errorf("from %s on an hour lasts until %s", before, first)
	}
	if at := sooner(first, 2*time.Hour); !at.Equal(first) {
		t.Errorf("until %s with more time, want %s as before", at, first)
	}
	if at := sooner(first, time.Minute); !at.Before(first) || at.Before(before.Add(time.Minute)) {
		t.Errorf("until %s with less time, want a minute from %s on", at, before)
	}
}
