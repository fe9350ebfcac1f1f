package nvml

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Pause is how long Watch waits for an event before it checks whether ctx is done.
const Pause = 250 * time.Millisecond

// Beat is the time between two EventAlive events of Watch. The time may be longer by up to Pause.
const Beat = time.Second

// Look is the time after which Watch again samples the GPUs, and looks for processes that compute
// on them. The time may be longer by up to Pause.
const Look = 5 * time.Second

// Watch reports the XID and ECC events of the GPUs of lib whose UUIDs are in uuids. If uuids is empty, it
// watches all GPUs of lib. It returns nil when ctx is done. It returns an error when it can no longer watch any
// of the GPUs, or when report returns an error.
//
// While the driver answers, Watch reports an EventAlive at the beginning and then after each Beat. After each
// Look it reports a sample of each GPU, and the processes on the GPUs, if the driver lists the processes of
// every GPU. It reports once that a GPU is lost. If a GPU cannot be watched, Watch calls warn with the
// reason.
func Watch(ctx context.Context, lib Library, uuids []string, report func(Event) error, warn func(text string)) error {
	if err := lib.Init(); err != nil {
		return fmt.Errorf("begin with NVML: %w", err)
	}
	count, err := lib.Ask(QueryCount)
	if err != nil {
		return fmt.Errorf("count the GPUs: %w", err)
	}
	w := watcher{lib: lib, report: report, warn: warn, names: map[GPU]Event{}, sampled: map[GPU]*sampled{}, looked: time.Now()}
	missing := slices.Clone(uuids)
	for i := range integer(count.Numbers[0]) {
		g, err := lib.GPU(i)
		if err != nil {
			if len(uuids) == 0 {
				warn(fmt.Sprintf("GPU %d is not watched: %v", i, err))
			}
			continue
		}
		name := identity(g)
		if len(uuids) > 0 && !slices.Contains(uuids, name.UUID) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(uuid string) bool { return uuid == name.UUID })
		w.gpus = append(w.gpus, g)
		w.names[g] = name
		w.sampled[g] = &sampled{missing: map[Query]bool{}}
	}
	w.all, w.blind = slices.Clone(w.gpus), len(missing) > 0
	for _, uuid := range missing {
		warn(fmt.Sprintf("GPU %s is not watched: the driver does not report it", uuid))
	}
	for ctx.Err() == nil {
		if err := w.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

type watcher struct {
	lib    Library
	gpus   []GPU         // the GPUs whose events are watched
	all    []GPU         // all GPUs that should be watched
	blind  bool          // some of these GPUs cannot be queried
	names  map[GPU]Event // only UUID and PCI; a GPU that is lost may no longer report them
	report func(Event) error
	warn   func(text string)
	beat   time.Time // when EventAlive was last reported

	looked  time.Time // when the GPUs were last looked at, or Watch began
	sampled map[GPU]*sampled
}

// identity returns an event with the UUID and the PCI bus ID of g.
func identity(g GPU) Event {
	var e Event
	if a, err := g.Ask(QueryUUID, 0); err == nil {
		e.UUID = a.Text
	}
	if a, err := g.Ask(QueryPCI, 0); err == nil {
		e.PCI, _ = BusID(a.Text)
	}
	return e
}

// round watches until ctx is done or a GPU is lost. An event set that contains a lost GPU no longer
// waits, so the next round leaves that GPU out.
func (w *watcher) round(ctx context.Context) (err error) {
	set, err := w.lib.Events()
	if err != nil {
		return fmt.Errorf("make a set of events: %w", err)
	}
	defer func() {
		if freed := set.Free(); freed != nil && err == nil {
			w.warn(fmt.Sprintf("free the set of events: %v", freed))
		}
	}()
	var watched []GPU
	for _, g := range w.gpus {
		if err := set.Add(g); err != nil {
			w.warn(fmt.Sprintf("GPU %s is not watched: %v", w.name(g), err))
			continue
		}
		watched = append(watched, g)
	}
	if w.gpus = watched; len(w.gpus) == 0 {
		return errors.New("there is no GPU to watch")
	}
	for ctx.Err() == nil {
		if err := w.alive(); err != nil {
			return err
		}
		if err := w.look(); err != nil {
			return err
		}
		o, err := set.Wait(Pause)
		switch {
		case errors.Is(err, ErrTimeout):
			continue
		case err != nil && w.dropLost():
			return w.tellLost()
		case err != nil:
			return fmt.Errorf("wait for events: %w", err)
		}
		if err := w.report(w.event(o)); err != nil {
			return err
		}
	}
	return nil
}

// alive reports that the driver has answered, once in each Beat.
func (w *watcher) alive() error {
	now := time.Now()
	if now.Sub(w.beat) < Beat {
		return nil
	}
	w.beat = now
	return w.report(Event{Time: now, Kind: EventAlive})
}

// look reports the samples of the GPUs and the processes on them, once in each Look.
func (w *watcher) look() error {
	now := time.Now()
	if now.Sub(w.looked) < Look {
		return nil
	}
	w.looked = now
	for _, g := range w.all {
		s := w.sampled[g]
		if s.lost {
			continue
		}
		e := w.names[g]
		e.Time, e.Kind = now, EventSample
		sample, ok, err := s.sample(now, g)
		switch {
		case err != nil:
			e.Kind, e.Text, s.lost = EventLost, err.Error(), true
		case ok:
			e.Sample = &sample
		default:
			continue
		}
		if err := w.report(e); err != nil {
			return err
		}
	}
	return w.processes(now)
}

// tellLost reports the GPUs that are lost and were not reported as lost before.
func (w *watcher) tellLost() error {
	for _, g := range w.all {
		s := w.sampled[g]
		if s.lost || slices.Contains(w.gpus, g) {
			continue
		}
		if _, err := g.Ask(QueryMemory, 0); errors.Is(err, ErrLost) {
			s.lost = true
			e := w.names[g]
			e.Time, e.Kind, e.Text = time.Now(), EventLost, err.Error()
			if err := w.report(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// processes reports the processes on the GPUs. It reports nothing if the driver does not list the processes of
// every GPU, because a busy GPU would then seem to be idle.
func (w *watcher) processes(now time.Time) error {
	if w.blind {
		return nil
	}
	var found []Event
	for _, g := range w.all {
		for _, q := range []Query{QueryCompute, QueryMPS} {
			processes, err := g.Processes(q)
			if q == QueryMPS && errors.Is(err, ErrNotSupported) {
				continue
			}
			if err != nil {
				return nil
			}
			for _, p := range processes {
				if p.PID <= 0 { // a process of another container
					return nil
				}
				e := w.names[g]
				e.Time, e.Kind, e.PID = now, EventProcess, p.PID
				found = append(found, e)
			}
		}
	}
	for _, e := range append(found, Event{Time: now, Kind: EventLooked}) {
		if err := w.report(e); err != nil {
			return err
		}
	}
	return nil
}

// dropLost stops watching the GPUs that are lost. It reports whether there are any.
func (w *watcher) dropLost() bool {
	var left []GPU
	for _, g := range w.gpus {
		// The UUID does not show a loss: the driver answers it from memory for a lost GPU, too.
		_, err := g.Ask(QueryUtilisation, 0)
		if !errors.Is(err, ErrLost) {
			_, err = g.Ask(QueryMemory, 0)
		}
		if errors.Is(err, ErrLost) {
			w.warn(fmt.Sprintf("GPU %s is not watched any more: %v", w.name(g), err))
			continue
		}
		left = append(left, g)
	}
	dropped := len(left) < len(w.gpus)
	w.gpus = left
	return dropped
}

func (w *watcher) name(g GPU) string {
	if e := w.names[g]; e.UUID != "" {
		return e.UUID
	} else if e.PCI != "" {
		return e.PCI
	}
	return "without a UUID"
}

func (w *watcher) event(o Occurrence) Event {
	e, known := w.names[o.GPU]
	if !known {
		e = identity(o.GPU)
	}
	e.Time, e.Kind = time.Now(), o.Kind
	if o.Kind == EventXID {
		e.XID = integer(o.Data)
	}
	if o.GPUInstance != nil {
		e.Text = fmt.Sprintf("GPU instance %d", *o.GPUInstance)
		if o.ComputeInstance != nil {
			e.Text += fmt.Sprintf(", compute instance %d", *o.ComputeInstance)
		}
	}
	return e
}
