package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// slow is a controller that receives a message only when the test allows it.
type slow struct {
	taking chan struct{} // gets a value when a message is being sent
	take   chan error    // the test sends the result of sending here
	got    []*wire.GangReply
}

func newSlow() *slow { return &slow{taking: make(chan struct{}), take: make(chan error)} }

func (s *slow) Send(m *wire.GangReply) error {
	s.taking <- struct{}{}
	s.got = append(s.got, m)
	return <-s.take
}

// said returns a message as words, in the order in which a controller handles its parts.
func said(t *testing.T, m *wire.GangReply) (words []string) {
	t.Helper()
	for _, data := range m.Lines {
		var line job.Line
		if err := json.Unmarshal(data, &line); err != nil {
			t.Fatal(err)
		}
		words = append(words, line.Text)
	}
	for _, data := range m.Events {
		var e job.Event
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		words = append(words, fmt.Sprintf("%s %d", e.Kind, e.Rank))
	}
	if m.Done != nil {
		words = append(words, fmt.Sprintf("done %d", m.Done.Unreaped))
	}
	return words
}

// TestReportsAreBatched checks that everything that is reported while a message is being sent goes into the next
// message. There, lines come before events, and the end comes last.
func TestReportsAreBatched(t *testing.T) {
	r, to := &Queue{}, newSlow()
	sent := make(chan error, 1)
	go func() { sent <- r.Send(t.Context(), to) }()
	r.Event(job.Event{Kind: job.KindStarted, Rank: 0})
	<-to.taking
	r.Event(job.Event{Kind: job.KindStarted, Rank: 1})
	r.Lines(job.Line{Text: "first"}, job.Line{Text: "last words"})
	r.Event(job.Event{Kind: job.KindExit, Rank: 1})
	to.take <- nil
	<-to.taking
	to.take <- nil
	r.Event(job.Event{Kind: job.KindExit, Rank: 0})
	<-to.taking
	r.Done([]int32{3, 4})
	to.take <- nil
	<-to.taking
	to.take <- nil
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range to.got {
		got = append(got, fmt.Sprintf("%q", said(t, m)))
	}
	want := []string{`["started 0"]`, `["first" "last words" "started 1" "exit 1"]`, `["exit 0"]`, `["done [3 4]"]`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// counted is a controller that receives messages without delay.
type counted struct{ got []*wire.GangReply }

func (c *counted) Send(m *wire.GangReply) error { c.got = append(c.got, m); return nil }

// TestReportsKeepTheirOrder checks that nothing is lost and that the reports of each rank keep their order, however
// they are divided into messages. The lines of a rank must come before its exit.
func TestReportsKeepTheirOrder(t *testing.T) {
	const ranks, events = 8, 200
	r, to := &Queue{}, &counted{}
	sent := make(chan error, 1)
	go func() { sent <- r.Send(t.Context(), to) }()
	var wg sync.WaitGroup
	for rank := range ranks {
		wg.Go(func() {
			for pid := range events {
				r.Event(job.Event{Kind: job.KindStarted, Rank: rank, PID: pid})
			}
			r.Lines(job.Line{Rank: rank, Text: "last words"})
			r.Event(job.Event{Kind: job.KindExit, Rank: rank})
		})
	}
	wg.Wait()
	r.Done(nil)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	next, words, exits := make([]int, ranks), make([]bool, ranks), 0
	for i, m := range to.got {
		for _, data := range m.Lines {
			var line job.Line
			if err := json.Unmarshal(data, &line); err != nil {
				t.Fatal(err)
			}
			words[line.Rank] = true
		}
		for _, data := range m.Events {
			var e job.Event
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			switch e.Kind {
			case job.KindStarted:
				if e.PID != next[e.Rank] {
					t.Fatalf("rank %d: event %d comes where %d should", e.Rank, e.PID, next[e.Rank])
				}
				next[e.Rank]++
			case job.KindExit:
				exits++
				if !words[e.Rank] || next[e.Rank] != events {
					t.Errorf("rank %d: the exit comes before what came first", e.Rank)
				}
			}
		}
		if (m.Done != nil) != (i == len(to.got)-1) {
			t.Errorf("message %d of %d: done is %v", i+1, len(to.got), m.Done)
		}
	}
	if exits != ranks {
		t.Errorf("%d exits were reported, want %d", exits, ranks)
	}
}

// TestReportsDropOnlyProgress checks that only progress is dropped, and only beyond a limit, if a controller does not
// read.
func TestReportsDropOnlyProgress(t *testing.T) {
	r := &Queue{}
	for range maxReports + 7 {
		r.Event(job.Event{Kind: job.KindProgress, Progress: &job.Progress{}})
	}
	for range 3 {
		r.Event(job.Event{Kind: job.KindStarted})
	}
	r.Event(job.Event{Kind: job.KindProgress, Progress: &job.Progress{}})
	r.Event(job.Event{Kind: job.KindExit, Rank: 5, Exit: &job.Exit{}})
	r.Done(nil)
	to := &counted{}
	if err := r.Send(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if len(to.got) != 1 || len(to.got[0].Events) != maxReports+4 {
		t.Fatalf("%d messages, want 1 with %d events", len(to.got), maxReports+4)
	}
	if words := said(t, to.got[0]); !slices.Equal(words[maxReports:], []string{"started 0", "started 0", "started 0", "exit 5", "done []"}) {
		t.Errorf("the last are %q", words[maxReports:])
	}
}

// TestReportsToNobody checks that sending ends when the controller is gone.
func TestReportsToNobody(t *testing.T) {
	r, to := &Queue{}, newSlow()
	sent := make(chan error, 1)
	go func() { sent <- r.Send(t.Context(), to) }()
	r.Event(job.Event{Kind: job.KindStarted})
	<-to.taking
	gone := errors.New("the line is broken")
	to.take <- gone
	if err := <-sent; !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}
