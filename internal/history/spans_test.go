package history

import (
	"reflect"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/saves"
)

func TestSpans(t *testing.T) {
	f := In(t.TempDir())
	if all, err := f.Spans(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("without a file: %+v (%v)", all, err)
	}
	if err := f.Add(t.Context(), Entry{Run: "r0", Ended: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	if all, err := f.Spans(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("in a file of an older version: %+v (%v)", all, err)
	}
	stall, none := 2*time.Second, time.Duration(0)
	first := []saves.Span{
		{Job: "a", Hosts: []string{"h1", "caf\xe9"}, Ran: time.Hour, Failed: true, Write: time.Second, Stall: &stall},
		{Job: "a", Hosts: []string{"h1"}, Ran: time.Minute, Write: time.Second, Stall: &none},
	}
	second := []saves.Span{{Job: "b", Hosts: []string{"h2"}, Ran: 3}}
	for _, err := range []error{
		f.AddSpans(t.Context(), "r1", time.Unix(10, 0), first), f.AddSpans(t.Context(), "r2", time.Unix(20, 0), second),
		f.AddSpans(t.Context(), "r1", time.Unix(10, 0), first), f.AddSpans(t.Context(), "r3", time.Unix(30, 0), nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := f.Spans(t.Context())
	if want := []saves.Span{second[0], first[1], first[0]}; err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%+v (%v), want %+v", all, err, want)
	}
	if entries, err := f.List(t.Context(), "", 10); err != nil || len(entries) != 1 {
		t.Errorf("%d runs (%v), want 1", len(entries), err)
	}
}
