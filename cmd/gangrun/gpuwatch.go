package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
)

// gpuWatcher is a Launcher that listens, while a gang runs, to what the driver of
// this machine tells of the gang's GPUs, and puts it among the gang's events. Of trials
// it does so where ranks see each other's GPUs.
type gpuWatcher struct {
	supervisor.Launcher
	with probe.Watching // but its GPUs
	here func(host string) bool
	late time.Duration // lateWords
}

// lateWords is for how long a gang that has not ended well is listened to when it
// has ended: the driver tells of an error while ranks die of it, or after.
const lateWords = 500 * time.Millisecond

// oftenEnough is how many events of one GPU that are the same but for their time
// are told of in one attempt; what comes then is counted.
const oftenEnough = 8

// maxSeen is how many different things are told of in one attempt.
const maxSeen = 256

// withGPUWatch makes a launcher listen to this machine's GPUs; those of pretended
// hosts tell nothing.
func (s *session) withGPUWatch(l supervisor.Launcher) supervisor.Launcher {
	if s.spec.Loopback > 0 {
		return l
	}
	return gpuWatcher{Launcher: l, late: lateWords, here: s.here}
}

// Run implements supervisor.Launcher.
func (w gpuWatcher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	gpus := gpusHere(a.Placement, w.here)
	shared := launcher.SharedView(a, gpus.host)
	if len(gpus.uuids) == 0 || a.Trial() && !shared {
		return w.Launcher.Run(ctx, a, emit)
	}
	var mu sync.Mutex
	oneByOne := func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
	ears := &gpuEars{gpus: gpus, attempt: a.Number, emit: oneByOne}
	if shared {
		ears.use = newGPUUse(gpus)
	}
	listen, deafen := context.WithCancel(context.WithoutCancel(ctx))
	defer deafen()
	with := w.with
	with.GPUs = gpus.uuids
	done := make(chan struct{})
	go func() {
		defer close(done)
		probe.Watch(listen, with, ears.event, ears.finding)
	}()
	outcome, err := w.Launcher.Run(ctx, a, func(e job.Event) {
		if ears.use != nil {
			ears.use.started(e)
		}
		oneByOne(e)
	})
	if err == nil && !a.Trial() && !outcome.Good(len(a.Placement.Ranks)) {
		late := time.NewTimer(w.late)
		select {
		case <-late.C:
		case <-done:
		case <-ctx.Done(): // the user has ended it
		}
		late.Stop()
	}
	deafen()
	<-done
	ears.close()
	return outcome, err
}

// heldGPUs are the GPUs of this machine that a gang holds.
type heldGPUs struct {
	host  string
	uuids []string         // of whole GPUs
	ranks map[string][]int // that hold each, or MIG instances of it
	label map[string]string
	pci   map[string]string // UUIDs by bus id, for a GPU that cannot tell its UUID any more
}

// gpusHere finds them in a placement; here reports whether a host is this machine.
func gpusHere(p job.Placement, here func(host string) bool) heldGPUs {
	g := heldGPUs{ranks: map[string][]int{}, label: map[string]string{}, pci: map[string]string{}}
	at := slices.IndexFunc(p.Hosts, func(h job.Host) bool { return here(h.Name) })
	if at < 0 {
		return g
	}
	h := p.Hosts[at]
	g.host = h.Name
	whole := map[string]string{} // the GPU of each device
	for i, label := range topology.Labels(h) {
		d := h.Devices[i]
		whole[d.UUID] = cmp.Or(d.GPU, d.UUID)
		label, _, _ = strings.Cut(label, ":")
		g.label[whole[d.UUID]] = label
		g.pci[d.PCI] = whole[d.UUID]
	}
	for _, r := range p.On(h.Name) {
		for _, device := range r.Devices {
			uuid := cmp.Or(whole[device], device)
			if g.ranks[uuid] == nil {
				g.uuids = append(g.uuids, uuid)
			}
			if !slices.Contains(g.ranks[uuid], r.Rank) {
				g.ranks[uuid] = append(g.ranks[uuid], r.Rank)
			}
		}
	}
	return g
}

// name is how a GPU is called, with the ranks that hold it.
func (g heldGPUs) name(uuid, pci string) string {
	name := cmp.Or(g.label[uuid], uuid, "GPU "+cmp.Or(pci, "not known"))
	if ranks := g.ranks[uuid]; len(ranks) > 0 {
		var numbers []string
		for _, r := range ranks {
			numbers = append(numbers, strconv.Itoa(r))
		}
		held := "rank "
		if len(ranks) > 1 {
			held = "ranks "
		}
		name += " (" + held + few(numbers) + ")"
	}
	return name
}

// gpuEars turn what probe.Watch tells into events. Watch calls one of their
// methods at a time.
type gpuEars struct {
	gpus    heldGPUs
	attempt int
	emit    func(job.Event)
	use     *gpuUse   // nil where ranks see only their own
	seen    []gpuSeen // what has happened, in order
}

// gpuSeen is how often something has happened to a GPU.
type gpuSeen struct {
	what  nvml.Event // without a time
	times int
}

// event takes what the driver tells.
func (e *gpuEars) event(what nvml.Event) {
	switch {
	case what.Kind != nvml.EventProcess && what.Kind != nvml.EventLooked:
		e.happened(what)
	case e.use == nil:
	case what.Kind == nvml.EventProcess:
		e.use.process(what)
	default:
		if m, is := e.use.looked(); is {
			e.put(job.Event{Time: what.Time, Text: e.gpus.mixedUpWords(m), GPU: &job.GPU{Sign: job.GPUShared, UUID: m.uuid, Ranks: m.users}})
		}
	}
}

// happened tells of what has happened to a GPU, or counts it.
func (e *gpuEars) happened(what nvml.Event) {
	at := what.Time
	what.Time = time.Time{}
	what.UUID = cmp.Or(what.UUID, e.gpus.pci[what.PCI])
	i := slices.IndexFunc(e.seen, func(s gpuSeen) bool { return s.what == what })
	if i < 0 {
		if i = len(e.seen); i == maxSeen {
			return
		}
		e.seen = append(e.seen, gpuSeen{what: what})
	}
	e.seen[i].times++
	switch times := e.seen[i].times; {
	case times < oftenEnough:
		e.tell(at, what, 0, "")
	case times == oftenEnough:
		e.tell(at, what, 0, "; what follows of this is counted alone")
	}
}

// close tells what was only counted.
func (e *gpuEars) close() {
	for _, s := range e.seen {
		if s.times > oftenEnough {
			e.tell(time.Now(), s.what, s.times, fmt.Sprintf("; %d times in all", s.times))
		}
	}
}

func (e *gpuEars) tell(at time.Time, what nvml.Event, count int, more string) {
	text := e.gpus.name(what.UUID, what.PCI) + ": "
	switch what.Kind {
	case nvml.EventXID:
		text += xidWords(what.XID)
	case nvml.EventECCSingle:
		text += "an error of its memory, which ECC has corrected"
	case nvml.EventECCDouble:
		text += "an error of its memory, which ECC could not correct"
	}
	if what.Text != "" {
		text += ", " + what.Text
	}
	e.put(job.Event{Time: at, Text: text + more, GPU: &job.GPU{
		Sign: job.GPUSign(what.Kind), UUID: what.UUID, PCI: what.PCI, XID: what.XID, Ranks: e.gpus.ranks[what.UUID], Count: count,
	}})
}

// finding tells of what keeps GPUs from being watched.
func (e *gpuEars) finding(f job.Finding) {
	sign := job.GPUUnwatched
	if f.Check == probe.CheckHung {
		sign = job.GPUDriverHung
	}
	e.put(job.Event{Time: time.Now(), Text: f.Text, Hint: f.Hint, GPU: &job.GPU{Sign: sign}})
}

func (e *gpuEars) put(event job.Event) {
	event.Kind, event.Attempt, event.Host = job.KindGPU, e.attempt, e.gpus.host
	e.emit(event)
}
