package nvml

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	gi, ci := 3, 1
	for name, test := range map[string]struct {
		host   func(gpus []*fakeGPU, l *fakeLibrary, end func())
		events []Event
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
			begin := time.Now()
			err := Watch(ctx, l, func(e Event) error {
				if e.Time.Before(begin) || e.Time.After(time.Now()) {
					t.Errorf("at %v", e.Time)
				}
				e.Time = time.Time{}
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
	err := Watch(t.Context(), l, func(Event) error { return broken }, func(string) {})
	if !errors.Is(err, broken) || l.sets[0].freed != 1 {
		t.Errorf("ended with %v, freed %d", err, l.sets[0].freed)
	}
	if !strings.Contains(text(err), "broken pipe") {
		t.Errorf("%q", text(err))
	}
}
