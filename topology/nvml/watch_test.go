package nvml

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatch(t *testing.T) {
	gi, ci := 3, 1
	for name, test := range map[string]struct {
		host   func(gpus []*fakeGPU, l *fakeLibrary, end func())
		events []Event
		only   []string
		warns  []string
		err    string // empty: it ends because it is told to
		freed  int
	}{
		"events": {
			host: func(g []*fakeGPU, l *fakeLibrary, end func()) {
				timeout := said{"Timeout", ErrTimeout}
				l.sets = []*fakeSet{{tells: []any{
					timeout, Occurrence{GPU: g[1], Kind: EventXID, Data: 94, GPUInstance: &gi, ComputeInstance: &ci}, timeout,
					Occurrence{GPU: g[0], Kind: EventECCDouble, Data: 7}, Occurrence{GPU: g[0], Kind: EventECCSingle}, end,
				}}}
			},
			events: []Event{
				{Kind: EventXID, UUID: "GPU-1", PCI: "0000:20:00.0", XID: 94, Text: "GPU instance 3, compute instance 1"},
				{Kind: EventECCDouble, UUID: "GPU-0", PCI: "0000:10:00.0"}, {Kind: EventECCSingle, UUID: "GPU-0", PCI: "0000:10:00.0"},
			},
			freed: 1,
		},
		"one falls off the bus": {
			host: func(g []*fakeGPU, l *fakeLibrary, end func()) {
				l.sets = []*fakeSet{
					{tells: []any{func() { g[0].broken = lost }, Occurrence{GPU: g[0], Kind: EventXID, Data: 79}, error(lost)}},
					{tells: []any{Occurrence{GPU: g[1], Kind: EventXID, Data: 45}, end}, refuse: map[GPU]error{g[0]: lost}},
				}
			},
			events: []Event{{Kind: EventXID, UUID: "GPU-0", PCI: "0000:10:00.0", XID: 79}, {Kind: EventXID, UUID: "GPU-1", PCI: "0000:20:00.0", XID: 45}},
			warns:  []string{"GPU GPU-0 is not watched any more: GPU is lost"},
			freed:  2,
		},
		"both fall off the bus": {
			host: func(g []*fakeGPU, l *fakeLibrary, _ func()) {
				l.sets = []*fakeSet{{tells: []any{func() { g[0].broken, g[1].broken = lost, lost }, error(lost)}}, {}}
			},
			warns: []string{"GPU GPU-0 is not watched any more: GPU is lost", "GPU GPU-1 is not watched any more: GPU is lost"},
			err:   "there is no GPU to watch", freed: 2,
		},
		"one cannot be watched": {
			host: func(g []*fakeGPU, l *fakeLibrary, end func()) {
				l.sets = []*fakeSet{{refuse: map[GPU]error{g[0]: notSupported}, tells: []any{Occurrence{GPU: g[1], Kind: EventXID, Data: 13}, end}, free: unknownError}}
			},
			events: []Event{{Kind: EventXID, UUID: "GPU-1", PCI: "0000:20:00.0", XID: 13}},
			warns:  []string{"GPU GPU-0 is not watched: Not Supported", "free the set of events: Unknown Error"},
			freed:  1,
		},
		"of these alone": {
			host: func(g []*fakeGPU, l *fakeLibrary, end func()) {
				l.sets = []*fakeSet{{refuse: map[GPU]error{g[0]: unknownError}, tells: []any{Occurrence{GPU: g[1], Kind: EventXID, Data: 31}, end}}}
			},
			only:   []string{"GPU-1", "GPU-7"},
			events: []Event{{Kind: EventXID, UUID: "GPU-1", PCI: "0000:20:00.0", XID: 31}},
			warns:  []string{"GPU GPU-7 is not watched: the driver does not report it"},
			freed:  1,
		},
		"none of these": {
			host: func(_ []*fakeGPU, l *fakeLibrary, _ func()) { l.gpus[0] = error(lost); l.sets = []*fakeSet{{}} },
			only: []string{"GPU-0"}, warns: []string{"GPU GPU-0 is not watched: the driver does not report it"},
			err: "there is no GPU to watch", freed: 1,
		},
		"one has no handle": {
			host: func(_ []*fakeGPU, l *fakeLibrary, end func()) {
				l.gpus[0] = error(lost)
				l.sets = []*fakeSet{{tells: []any{end}}}
			},
			warns: []string{"GPU 0 is not watched: GPU is lost"}, freed: 1,
		},
		"waiting fails":    {host: func(_ []*fakeGPU, l *fakeLibrary, _ func()) { l.sets = []*fakeSet{{tells: []any{error(unknownError)}}} }, err: "wait for events: Unknown Error", freed: 1},
		"no driver":        {host: func(_ []*fakeGPU, l *fakeLibrary, _ func()) { l.init = said{"none", ErrNoDriver} }, err: "begin with NVML: none"},
		"no count":         {host: func(_ []*fakeGPU, l *fakeLibrary, _ func()) { l.answers[QueryCount] = unknownError }, err: "count the GPUs: Unknown Error"},
		"no set":           {host: func([]*fakeGPU, *fakeLibrary, func()) {}, err: "make a set of events: no more event sets"},
		"no GPU":           {host: func(_ []*fakeGPU, l *fakeLibrary, _ func()) { l.answers[QueryCount] = num(0); l.sets = []*fakeSet{{}} }, err: "there is no GPU to watch", freed: 1},
		"ended beforehand": {host: func(_ []*fakeGPU, _ *fakeLibrary, end func()) { end() }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := fakeHost(2, nil)
			test.host([]*fakeGPU{l.gpus[0].(*fakeGPU), l.gpus[1].(*fakeGPU)}, l, cancel)
			var events []Event
			var warns []string
			var alive int
			begin := time.Now()
			err := Watch(ctx, l, test.only, func(e Event) error {
				if e.Time.Before(begin) || e.Time.After(time.Now()) {
					t.Errorf("at %v", e.Time)
				}
				e.Time = time.Time{}
				if e == (Event{Kind: EventAlive}) {
					alive++
					return nil
				}
				if alive == 0 {
					t.Errorf("%+v before it has told that it watches", e)
				}
				events = append(events, e)
				return nil
			}, func(text string) { warns = append(warns, text) })
			if got := text(err); got != test.err {
				t.Errorf("ended with %q, want %q", got, test.err)
			}
			if !reflect.DeepEqual(events, test.events) {
				t.Errorf("events %+v, want %+v", events, test.events)
			}
			if !reflect.DeepEqual(warns, test.warns) {
				t.Errorf("warnings %q, want %q", warns, test.warns)
			}
			freed := 0
			for _, s := range l.sets {
				freed += s.freed
			}
			if freed != test.freed {
				t.Errorf("%d sets were freed, want %d", freed, test.freed)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWatchCannotTell(t *testing.T) {
	l := fakeHost(1, nil)
	l.sets = []*fakeSet{{tells: []any{Occurrence{GPU: l.gpus[0].(*fakeGPU), Kind: EventXID, Data: 31}}}}
	broken := errors.New("broken pipe")
	err := Watch(t.Context(), l, nil, func(e Event) error {
		if e.Kind == EventAlive {
			return nil
		}
		return broken
	}, func(string) {})
	if !errors.Is(err, broken) || l.sets[0].freed != 1 {
		t.Errorf("ended with %v, freed %d", err, l.sets[0].freed)
	}
	if !strings.Contains(text(err), "broken pipe") {
		t.Errorf("%q", text(err))
	}
}

// TestWatchBeats holds that a driver that answers is told to be alive again and
// again, and one that does not is not.
func TestWatchBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := fakeHost(1, nil)
		timeout := func() { time.Sleep(Pause) }
		set := &fakeSet{}
		for range 9 {
			set.tells = append(set.tells, timeout, said{"Timeout", ErrTimeout})
		}
		l.sets = []*fakeSet{{tells: append(set.tells, func() { time.Sleep(time.Minute) }, said{"Timeout", ErrTimeout}, cancel)}}
		begin := time.Now()
		var beats []time.Duration
		if err := Watch(ctx, l, nil, func(e Event) error {
			if e.Kind == EventAlive {
				beats = append(beats, e.Time.Sub(begin))
			}
			return nil
		}, func(text string) { t.Error(text) }); err != nil {
			t.Error(err)
		}
		if want := []time.Duration{0, Beat, 2 * Beat, time.Minute + 9*Pause}; !slices.Equal(beats, want) {
			t.Errorf("beats at %v, want %v", beats, want)
		}
	})
}

// TestWatchLooks holds that the processes on all GPUs are told of each Look, and none of
// a look in which the driver does not name those of every GPU.
func TestWatchLooks(t *testing.T) {
	process := func(gpu, pid int) Event {
		return Event{Kind: EventProcess, UUID: []string{"GPU-0", "GPU-1"}[gpu], PCI: []string{"0000:10:00.0", "0000:20:00.0"}[gpu], PID: pid}
	}
	looked := Event{Kind: EventLooked}
	for name, test := range map[string]struct {
		change func(g []*fakeGPU, l *fakeLibrary)
		only   []string
		want   []Event // in two looks
	}{
		"none": {func([]*fakeGPU, *fakeLibrary) {}, nil, []Event{looked, looked}},
		"some": {func(g []*fakeGPU, _ *fakeLibrary) {
			g[0].processes = map[Query]any{QueryCompute: []Process{{PID: 7}, {PID: 8}}, QueryGraphics: []Process{{PID: 6}}, QueryMPS: notSupported}
			g[1].processes = map[Query]any{QueryMPS: []Process{{PID: 9}}}
		}, nil, []Event{process(0, 7), process(0, 8), process(1, 9), looked, process(0, 7), process(0, 8), process(1, 9), looked}},
		"of these alone": {func(g []*fakeGPU, _ *fakeLibrary) {
			g[0].processes = map[Query]any{QueryCompute: []Process{{PID: 7}}}
		}, []string{"GPU-1"}, []Event{looked, looked}},
		"one whose events cannot be watched": {func(g []*fakeGPU, l *fakeLibrary) {
			g[1].processes = map[Query]any{QueryCompute: []Process{{PID: 9}}, QueryMPS: notSupported}
			l.sets[0].refuse = map[GPU]error{g[1]: notSupported}
		}, nil, []Event{process(1, 9), looked, process(1, 9), looked}},
		"not told": {func(g []*fakeGPU, _ *fakeLibrary) {
			g[0].processes = map[Query]any{QueryCompute: []Process{{PID: 7}}}
			g[1].processes = map[Query]any{QueryCompute: notSupported}
		}, nil, nil},
		"of another container": {func(g []*fakeGPU, _ *fakeLibrary) {
			g[0].processes = map[Query]any{QueryCompute: []Process{{PID: 7}, {PID: 0}}}
		}, nil, nil},
		"one is not there": {func(g []*fakeGPU, _ *fakeLibrary) {
			g[0].processes = map[Query]any{QueryCompute: []Process{{PID: 7}}}
		}, []string{"GPU-0", "GPU-7"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				l := fakeHost(2, nil)
				set := &fakeSet{}
				for range 2 * Look / Pause {
					set.tells = append(set.tells, func() { time.Sleep(Pause) }, said{"Timeout", ErrTimeout})
				}
				set.tells = append(set.tells, func() { time.Sleep(Pause) }, said{"Timeout", ErrTimeout}, cancel)
				l.sets = []*fakeSet{set}
				test.change([]*fakeGPU{l.gpus[0].(*fakeGPU), l.gpus[1].(*fakeGPU)}, l)
				begin := time.Now()
				var got []Event
				if err := Watch(ctx, l, test.only, func(e Event) error {
					if e.Kind != EventAlive {
						if age := e.Time.Sub(begin); age != Look && age != 2*Look {
							t.Errorf("%+v after %v", e, age)
						}
						e.Time = time.Time{}
						got = append(got, e)
					}
					return nil
				}, func(string) {}); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("got  %+v\nwant %+v", got, test.want)
				}
			})
		})
	}
}
