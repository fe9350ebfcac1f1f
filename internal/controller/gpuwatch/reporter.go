package gpuwatch

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
)

const (
	// If driver events of an attempt differ only in their time, maxRepeats limits how many of them are reported one by
	// one. Later ones are only counted.
	maxRepeats = 8
	// maxDistinct limits how many different driver events of an attempt are reported.
	maxDistinct = 256
)

// reporter turns the findings of probe.Watch into events of a run. Watch calls only one of its methods at a time.
type reporter struct {
	gpus    gangGPUs
	attempt int
	emit    func(job.Event)
	sharing *sharing     // nil if it is not known which processes the ranks have
	seen    []eventCount // in the order of their first occurrence

	mu     sync.Mutex
	health map[string]*health // by the UUIDs of the GPUs
}

// eventCount says how often a driver event has occurred.
type eventCount struct {
	event nvml.Event // without a time
	times int
}

// event handles the next event of the driver.
func (r *reporter) event(e nvml.Event) {
	switch e.Kind {
	case nvml.EventProcess:
		if r.sharing != nil {
			r.sharing.process(e)
		}
	case nvml.EventLooked:
		r.looked(e.Time)
	case nvml.EventSample:
		r.sample(e)
	default:
		r.driverEvent(e)
	}
}

// looked handles the end of a look at the processes on the GPUs.
func (r *reporter) looked(at time.Time) {
	if r.sharing == nil {
		return
	}
	m, found, strangers := r.sharing.endRound()
	if found {
		r.put(job.Event{Time: at, Text: r.gpus.mixupText(m), GPU: &job.GPU{Sign: job.GPUShared, Severity: job.SeverityNote, UUID: m.uuid, Ranks: m.users}})
	}
	for _, s := range strangers {
		r.put(job.Event{Time: at, Text: fmt.Sprintf("%s: %s computes on it too, and is not of this gang", r.gpus.name(s.uuid, ""), s.name),
			Hint: "end that process, or use other GPUs: the leases keep only gangs of gangrun apart",
			GPU:  &job.GPU{Sign: job.GPUForeign, Severity: job.SeverityWarning, UUID: s.uuid, Ranks: r.gpus.ranks[s.uuid]}})
	}
}

// sample handles a sample of a GPU.
func (r *reporter) sample(e nvml.Event) {
	for _, s := range r.judge(e.UUID, *e.Sample) {
		r.put(job.Event{Time: e.Time, Text: r.gpus.name(e.UUID, e.PCI) + ": " + s.text, Hint: s.hint,
			GPU: &job.GPU{Sign: s.sign, Severity: s.severity, UUID: e.UUID, PCI: e.PCI, Ranks: r.gpus.ranks[e.UUID]}})
	}
}

// driverEvent reports an event. If the event has occurred too often already, driverEvent only counts it.
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
	g := &job.GPU{Sign: job.GPUSign(e.Kind), UUID: e.UUID, PCI: e.PCI, XID: e.XID, Ranks: r.gpus.ranks[e.UUID], Count: count}
	hint := ""
	switch e.Kind {
	case nvml.EventXID:
		a := adviceOn(e.XID)
		text += xidText(e.XID)
		g.Bucket, g.Severity, hint = bucketOf(e.XID), a.severity, a.hint
		suffix = " (" + a.text + ")" + suffix
	case nvml.EventECCSingle:
		text += "a memory error, which ECC has corrected"
		g.Severity = job.SeverityNote
	case nvml.EventECCDouble:
		text += "a memory error, which ECC could not correct"
		g.Severity, hint = job.SeverityError, byNumber[48].hint
	case nvml.EventLost:
		text += "the driver can no longer reach it"
		g.Sign, g.Severity, hint = job.GPULost, job.SeverityError, byNumber[79].hint
	}
	if e.Text != "" {
		text += ", " + e.Text
	}
	r.put(job.Event{Time: at, Text: text + suffix, Hint: hint, GPU: g})
}

// finding reports a reason why GPUs cannot be watched.
func (r *reporter) finding(f job.Finding) {
	g := &job.GPU{Sign: job.GPUUnwatched, Severity: job.SeverityNote}
	if f.Check == probe.CheckHung {
		g = &job.GPU{Sign: job.GPUDriverHung, Severity: job.SeverityError}
	}
	r.put(job.Event{Time: time.Now(), Text: f.Text, Hint: f.Hint, GPU: g})
}

func (r *reporter) put(e job.Event) {
	e.Kind, e.Attempt, e.Host = job.KindGPU, r.attempt, r.gpus.host
	r.emit(e)
}
