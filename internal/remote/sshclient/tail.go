package sshclient

import "sync"

// stderrLimit is how much is kept of the standard error of a command, in bytes.
const stderrLimit = 16 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
	cut  bool
}

// Write keeps p, and drops the beginning of what is kept if that is too much.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - stderrLimit; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
		t.cut = true
	}
	return len(p), nil
}

// String returns what is kept, behind "..." if something was dropped.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "..." + string(t.data)
	}
	return string(t.data)
}
