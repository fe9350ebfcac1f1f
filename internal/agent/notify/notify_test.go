package notify

import (
	"sync"
	"testing"
)

func TestBroadcast(t *testing.T) {
	var b Broadcast
	b.Notify() // no goroutine waits
	first := b.Changed()
	if closed(first) {
		t.Fatal("the channel was closed by an earlier Notify")
	}
	if b.Changed() != first {
		t.Error("two calls of Changed before a Notify return different channels")
	}
	b.Notify()
	if !closed(first) {
		t.Error("Notify did not close the channel")
	}
	second := b.Changed()
	if closed(second) {
		t.Error("the new channel was closed by the earlier Notify")
	}
	b.Notify()
	b.Notify()
	if !closed(second) {
		t.Error("the second Notify did not close the channel")
	}
}

// TestNoMissedChange: a goroutine that calls Changed before it reads the state misses no change.
func TestNoMissedChange(t *testing.T) {
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
