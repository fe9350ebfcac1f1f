// Package notify wakes goroutines that wait for a change. It also waits with a time limit.
package notify

import "sync"

// Broadcast announces changes to all goroutines that wait for a change. Its zero value is ready to use.
type Broadcast struct {
	mu   sync.Mutex
	next chan struct{} // nil if no goroutine waits
}

// Notify closes the channels that Changed has returned since the last Notify.
func (b *Broadcast) Notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// Changed returns a channel that the next Notify closes. Call it before reading the state that
// may change.
func (b *Broadcast) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}
