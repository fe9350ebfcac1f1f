package launcher

import (
	"sync"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestEmitterKeepsOrder checks that events are emitted one at a time, and that those of each sender keep their order.
func TestEmitterKeepsOrder(t *testing.T) {
	const senders, events = 4, 1000
	var mu sync.Mutex // held during a call of emit, so that the test sees calls at the same time
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
	e.close() // returns when all events have been emitted
	for rank, n := range next {
		if n != events {
			t.Errorf("of sender %d, %d events were handed on, want %d", rank, n, events)
		}
	}
	if strays != 0 {
		t.Errorf("%d events came out of order", strays)
	}
}

// TestEmitterDoesNotBlock checks that senders do not wait if emit blocks. Only progress events are dropped meanwhile,
// and only beyond a limit.
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

// TestEmitterOfNothing checks that close returns if there were no events.
func TestEmitterOfNothing(t *testing.T) {
	e := newEmitter(func(event job.Event) { t.Errorf("handed on was %+v", event) })
	e.close()
}
