package gpuwatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
)

const (
	// maxRepeats is how many events of an attempt that differ only in their time are
	// reported one by one. More of them are only counted.
	maxRepeats = 8
	// maxDistinct is how many different driver events of an attempt are reported.
	maxDistinct = 256
)

// reporter turns what probe.Watch finds into events of a run. Watch calls one of its
// methods at a time.
type reporter struct {
	gpus    gangGPUs
	attempt int
	emit    func(job.Event)
	sharing *sharing     // nil where ranks see only their own GPUs
	seen    []eventCount // in the order of their first time
}

// eventCount is how often a driver event has come.
type eventCount struct {
	event nvml.Event // without a time
	times int
}

// event takes the next event of the driver.
func (r *reporter) event(e nvml.Event) {
	switch {
	case e.Kind != nvml.EventProcess && e.Kind != nvml.EventLooked:
		r.driverEvent(e)
	case r.sharing == nil:
	case e.Kind == nvml.EventProcess:
		r.sharing.process(e)
	default:
		if m, found := r.sharing.endRound(); found {
			r.put(job.Event{Time: e.Time, Text: r.gpus.mixupText(m), GPU: &job.GPU{Sign: job.GPUShared, UUID: m.uuid, Ranks: m.users}})
		}
	}
}

// driverEvent reports an event, or only counts it where it has come often.
func (r *reporter) driverEvent(e nvml.Event) {
	at := e.Time
	e.Time = time.Time{}
	e.UUID = cmp.Or(e.UUID, r.gpus.byPCI[e.PCI])
	i := slices.IndexFunc(r.seen, func(c eventCount) bool { return c.event == e })
	if i < 0 {
		if i = len(r.seen); i == maxDistinct {
			return
		}
		r.seen = append(r.seen, eventCount{event: e})
	}
	r.seen[i].times++
	switch times := r.seen[i].times; {
	case times < maxRepeats:
		r.report(at, e, 0, "")
	case times == maxRepeats:
		r.report(at, e, 0, "; further ones are only counted")
	}
}

// close reports the events that were only counted.
func (r *reporter) close() {
	for _, c := range r.seen {
		if c.times > maxRepeats {
			r.report(time.Now(), c.event, c.times, fmt.Sprintf("; %d times in all", c.times))
		}
	}
}

func (r *reporter) report(at time.Time, e nvml.Event, count int, suffix string) {
	text := r.gpus.name(e.UUID, e.PCI) + ": "
	switch e.Kind {
	case nvml.EventXID:
		text += xidText(e.XID)
	case nvml.EventECCSingle:
		text += "a memory error, which ECC has corrected"
	case nvml.EventECCDouble:
		text += "a memory error, which ECC could not correct"
	}
	if e.Text != "" {
		text += ", " + e.Text
	}
	r.put(job.Event{Time: at, Text: text + suffix, GPU: &job.GPU{
		Sign: job.GPUSign(e.Kind), UUID: e.UUID, PCI: e.PCI, XID: e.XID, Ranks: r.gpus.ranks[e.UUID], Count: count,
	}})
}

// finding reports what keeps GPUs from being watched.
func (r *reporter) finding(f job.Finding) {
	sign := job.GPUUnwatched
	if f.Check == probe.CheckHung {
		sign = job.GPUDriverHung
	}
	r.put(job.Event{Time: time.Now(), Text: f.Text, Hint: f.Hint, GPU: &job.GPU{Sign: sign}})
}

func (r *reporter) put(e job.Event) {
	e.Kind, e.Attempt, e.Host = job.KindGPU, r.attempt, r.gpus.host
	r.emit(e)
}
