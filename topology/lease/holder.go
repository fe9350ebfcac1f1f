package lease

import (
	"fmt"
	"time"
)

// Holder returns who holds the GPU and since when, for messages. The time includes the day
// if it is more than 24 hours ago.
func (l Lease) Holder(now time.Time) string {
	if l.State == StateBarred {
		return "barred: " + l.Warning
	}
	if l.Owner == nil {
		return "held"
	}
	form := time.TimeOnly
	if now.Sub(l.Owner.Since) >= 24*time.Hour {
		form = time.DateTime
	}
	return fmt.Sprintf("held by %s since %s", l.Owner, l.Owner.Since.Local().Format(form))
}
