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
		err    string // empty if Watch ends because the test ends it
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
			events: []Event{{Kind: EventXID, UUID: "GPU-0", PCI: "0000:10:00.0", XID: 79}, {Kind: EventLost, UUID: "GPU-0", PCI: "0000:10:00.0", Text: "GPU is lost"}, {Kind: EventXID, UUID: "GPU-1", PCI: "0000:20:00.0", XID: 45}},
			warns:  []string{"GPU GPU-0 is not watched any more: GPU is lost"},
			freed:  2,
		},
		"both fall off the bus": {
			host: func(g []*fakeGPU, l *fakeLibrary, _ func()) {
				l.sets = []*fakeSet{{tells: []any{func() { g[0].broken, g[1].broken = lost, lost }, error(lost)}}, {}}
			},
			events: []Event{{Kind: EventLost, UUID: "GPU-0", PCI: "0000:10:00.0", Text: "GPU is lost"}, {Kind: EventLost, UUID: "GPU-1", PCI: "0000:20:00.0", Text: "GPU is lost"}},
			warns:  []string{"GPU GPU-0 is not watched any more: GPU is lost", "GPU GPU-1 is not watched any more: GPU is lost"},
			err:    "there is no GPU to watch", freed: 2,
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

// TestWatchBeats checks that Watch reports a driver that answers as alive again and again, and one that does
// not answer never.
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

// TestWatchLooks checks that Watch reports the processes on all GPUs after each Look. It must report none if
// the driver does not list the processes of every GPU.
func TestWatchLooks(t *testing.T) {
	process := func(gpu, pid int) Event {
		return Event{Kind: EventProcess, UUID: []string{"GPU-0", "GPU-1"}[gpu], PCI: []string{"0000:10:00.0", "0000:20:00.0"}[gpu], PID: pid}
	}
	looked := Event{Kind: EventLooked}
	for name, test := range map[string]struct {
		change func(g []*fakeGPU, l *fakeLibrary)
		only   []string
		want   []Event // the events of two looks
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
					if e.Kind != EventAlive && e.Kind != EventSample {
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

// TestWatchSamples checks that Watch reports the load of each GPU after each Look, without the values that the
// GPU does not have. It must report once that a GPU is lost.
func TestWatchSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := fakeHost(2, func(i int, g *fakeGPU) {
			g.answers[QueryPower], g.answers[QueryClock], g.answers[QueryTemperature] = num(698_900), num(1410), num(88)
			g.answers[QueryPCILink], g.answers[QueryThrottle] = num(3, 16, 5, 16), num(1<<6|1<<5)
			g.answers[QueryRemapped], g.answers[QueryRecovery] = num(1, 2, 1, 1), num(1)
			g.answers[QueryRetired] = notSupported
			g.links = map[int]any{0: PeerSwitch, 1: PeerSwitch}
			g.answers[QueryLinkErrors] = num(3, 1, 20, 5)
		})
		first, second := l.gpus[0].(*fakeGPU), l.gpus[1].(*fakeGPU)
		second.answers = map[Query]any{QueryUUID: Answer{Text: "GPU-1"}, QueryPCI: Answer{Text: "00000000:20:00.0"}, QueryUtilisation: num(7, 3)}
		set := &fakeSet{}
		for i := range 15 * int(Look/Pause) {
			if i == 4*int(Look/Pause)+2 {
				set.tells = append(set.tells, func() { second.broken = lost })
			}
			set.tells = append(set.tells, func() { time.Sleep(Pause) }, said{"Timeout", ErrTimeout})
		}
		l.sets = []*fakeSet{{tells: append(set.tells, cancel)}}
		samples, lostAt := map[string][]Sample{}, []string{}
		if err := Watch(ctx, l, nil, func(e Event) error {
			switch e.Kind {
			case EventSample:
				samples[e.UUID] = append(samples[e.UUID], *e.Sample)
			case EventLost:
				lostAt = append(lostAt, e.UUID+" "+e.Text)
			}
			return nil
		}, func(text string) { t.Error(text) }); err != nil {
			t.Error(err)
		}
		want := Sample{Utilisation: 93, Memory: 41, Power: 698, SMClock: 1410, Temperature: 88, Throttle: []string{"sw_thermal_slowdown", "hw_thermal_slowdown"},
			Generation: 3, Width: 16, LargestGeneration: 5, LargestWidth: 16,
			Remapped: RemappedRows{1, 2, true, true}, Recovery: "reset", LinkErrors: LinkErrors{Replays: 6, Recoveries: 2, CRC: 50}}
		if got := samples["GPU-0"]; len(got) != 15 || !reflect.DeepEqual(got[0], want) || !reflect.DeepEqual(got[14], want) {
			t.Errorf("%d samples, %+v", len(got), got)
		}
		if got := samples["GPU-1"]; len(got) != 4 || !reflect.DeepEqual(got[0], Sample{Utilisation: 7, Memory: 3}) {
			t.Errorf("%d samples, %+v", len(got), got)
		}
		if !slices.Equal(lostAt, []string{"GPU-1 GPU is lost"}) {
			t.Errorf("lost: %q", lostAt)
		}
		if first.links[1] = error(unknownError); linkErrors(first) != (LinkErrors{3, 1, 25}) {
			t.Errorf("without a link that cannot be asked: %+v", linkErrors(first))
		}
	})
}
