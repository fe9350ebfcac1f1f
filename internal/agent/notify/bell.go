package notify

import "sync"

// Broadcast wakes whoever waits for a change. Its zero value is ready.
type Broadcast struct {
	mu   sync.Mutex
	next chan struct{} // nil while nobody waits
}

// Notify wakes everybody who has called wait since the last ring.
func (b *Broadcast) Notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// Changed returns a channel that the next ring closes. Take it before looking at
// what may change.
func (b *Broadcast) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}
