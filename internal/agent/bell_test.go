package agent

import (
	"sync"
	"testing"
)

func TestBell(t *testing.T) {
	var b bell
	b.ring() // nobody hears it
	first := b.wait()
	if closed(first) {
		t.Fatal("a ring before the wait was heard")
	}
	if b.wait() != first {
		t.Error("who waits for the same ring gets another channel")
	}
	b.ring()
	if !closed(first) {
		t.Error("the ring was not heard")
	}
	second := b.wait()
	if closed(second) {
		t.Error("the ring was heard twice")
	}
	b.ring()
	b.ring()
	if !closed(second) {
		t.Error("the second ring was not heard")
	}
}

// Who takes the channel before looking misses no change.
func TestBellMissesNothing(t *testing.T) {
	var b bell
	var mu sync.Mutex
	const changes = 5000
	state := 0
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				change := b.wait()
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
		b.ring()
	}
	wg.Wait()
}
