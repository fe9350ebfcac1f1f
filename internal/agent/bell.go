package agent

import "sync"

// bell wakes whoever waits for a change. Its zero value is ready.
type bell struct {
	mu   sync.Mutex
	next chan struct{} // nil while nobody waits
}

// ring wakes everybody who has called wait since the last ring.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// wait returns a channel that the next ring closes. Take it before looking at
// what may change.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}
