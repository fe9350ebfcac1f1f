// Package eventkey recognises events that were reported before. If another controller adopts a gang, the agents
// report all events of the gang again.
package eventkey

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
)

// Of returns a key that is the same for two reports of one event, whose times may differ. It is
// "" for events that are reported only once.
func Of(e job.Event) string {
	switch e.Kind {
	case job.KindStarted:
		return fmt.Sprintf("%s %d", e.Kind, e.Rank)
	case job.KindAllStarted:
		return string(e.Kind)
	case job.KindStop:
		if e.Stop == job.StopOrder { // Text names who gave the order
			return string(e.Kind) + " " + string(e.Stop)
		}
		return string(e.Kind) + " " + e.Text
	case job.KindWireup:
		return string(e.Kind) + " " + e.Text
	case job.KindActivity:
		return string(e.Kind) + " " + e.Host
	case job.KindHealth:
		return string(e.Kind) + " " + e.Host + " " + e.Text
	case job.KindCurve:
		if e.Curve != nil {
			return fmt.Sprintf("%s %s %t", e.Kind, e.Curve.Kind, e.Curve.Sure)
		}
	case job.KindSave:
		if e.Save == nil {
			return ""
		}
		return string(e.Kind) + " " + e.Host + " " + e.Text + " " + e.Save.Begun.Format(time.RFC3339Nano)
	case job.KindExit:
		if e.Exit == nil {
			return ""
		}
		x := *e.Exit
		x.Time = time.Time{}
		if text, err := exact.Marshal(x); err == nil {
			return string(e.Kind) + " " + string(text)
		}
	}
	return ""
}
