package lease

import (
	"testing"
	"time"
)

func TestHolderNamesTheDay(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)
	for ago, want := range map[time.Duration]string{
		time.Hour:      "held by run r1 of ada (pid 12) since 11:00:00",
		24 * time.Hour: "held by run r1 of ada (pid 12) since 2026-05-03 12:00:00",
	} {
		l := Lease{State: StateHeld, Owner: &Owner{Run: "r1", User: "ada", PID: 12, Since: now.Add(-ago)}}
		if got := l.Holder(now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
