package launcher

import (
	"sync"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// Events are handed on one at a time and in order, each by each sender's.
func TestEmitterKeepsOrder(t *testing.T) {
	const senders, events = 4, 1000
	var mu sync.Mutex // held while an event is taken: emit is called one at a time
	next, strays := make([]int, senders), 0
	e := newEmitter(func(event job.Event) {
		if !mu.TryLock() {
			t.Error("two events are handed on at the same time")
			return
		}
		defer mu.Unlock()
		if event.PID != next[event.Rank] {
			strays++
		}
		next[event.Rank] = event.PID + 1
	})
	var wg sync.WaitGroup
	for rank := range senders {
		wg.Go(func() {
			for pid := range events {
				e.put(job.Event{Kind: job.KindStarted, Rank: rank, PID: pid})
			}
		})
	}
	wg.Wait()
	e.close() // everything has been handed on when it returns
	for rank, n := range next {
		if n != events {
			t.Errorf("of sender %d, %d events were handed on, want %d", rank, n, events)
		}
	}
	if strays != 0 {
		t.Errorf("%d events came out of order", strays)
	}
}

// Who takes the events may block: who has some goes on. Meanwhile progress is
// dropped beyond a limit, and nothing else is.
func TestEmitterDoesNotBlock(t *testing.T) {
	var got []job.Event
	taking, take := make(chan struct{}), make(chan struct{})
	e := newEmitter(func(event job.Event) {
		if len(got) == 0 {
			close(taking)
			<-take
		}
		got = append(got, event)
	})
	e.put(job.Event{Kind: job.KindNote})
	<-taking
	for i := range maxQueue + 7 {
		e.put(job.Event{Kind: job.KindProgress, PID: i})
	}
	for i := range 3 {
		e.put(job.Event{Kind: job.KindStarted, Rank: i})
	}
	e.put(job.Event{Kind: job.KindProgress, PID: -1})
	e.put(job.Event{Kind: job.KindExit})
	close(take)
	e.close()
	if want := 1 + maxQueue + 4; len(got) != want {
		t.Fatalf("%d events were handed on, want %d", len(got), want)
	}
	for i, event := range got[1 : 1+maxQueue] {
		if event.Kind != job.KindProgress || event.PID != i {
			t.Fatalf("event %d is %+v, want the progress that was put there", i+1, event)
		}
	}
	for i, event := range got[1+maxQueue:] {
		if want := []job.Kind{job.KindStarted, job.KindStarted, job.KindStarted, job.KindExit}[i]; event.Kind != want {
			t.Errorf("behind the progress, event %d is %s, want %s", i, event.Kind, want)
		}
	}
}

// An emitter that was given nothing ends.
func TestEmitterOfNothing(t *testing.T) {
	e := newEmitter(func(event job.Event) { t.Errorf("handed on was %+v", event) })
	e.close()
}
