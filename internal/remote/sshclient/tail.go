package sshclient

import "sync"

// stderrLimit is how many bytes are kept of the standard error of a command.
const stderrLimit = 16 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
	cut  bool
}

// Write adds p, and drops the oldest bytes if there are more than stderrLimit.
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

// String returns the kept bytes, with "..." before them if bytes were dropped.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "..." + string(t.data)
	}
	return string(t.data)
}
