package notify

import (
	"sync"
	"testing"
)

func TestBell(t *testing.T) {
	var b Broadcast
	b.Notify() // nobody hears it
	first := b.Changed()
	if closed(first) {
		t.Fatal("a ring before the wait was heard")
	}
	if b.Changed() != first {
		t.Error("who waits for the same ring gets another channel")
	}
	b.Notify()
	if !closed(first) {
		t.Error("the ring was not heard")
	}
	second := b.Changed()
	if closed(second) {
		t.Error("the ring was heard twice")
	}
	b.Notify()
	b.Notify()
	if !closed(second) {
		t.Error("the second ring was not heard")
	}
}

// Who takes the channel before looking misses no change.
func TestBellMissesNothing(t *testing.T) {
	var b Broadcast
	var mu sync.Mutex
	const changes = 5000
	state := 0
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				change := b.Changed()
				mu.Lock()
				now := state
				mu.Unlock()
				if now == changes {
					return
				}
				<-change
			}
		})
	}
	for range changes {
		mu.Lock()
		state++
		mu.Unlock()
		b.Notify()
	}
	wg.Wait()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
