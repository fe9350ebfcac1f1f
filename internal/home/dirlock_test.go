package home

import "testing"

// TestLockDir checks that the second of two runs with the same directory gets the name of the first one, as long as
// that lives.
func TestLockDir(t *testing.T) {
	home := t.TempDir()
	take := func(dir, run, want string) *DirLock {
		t.Helper()
		lock, other, err := LockDir(home, dir, run)
		if err != nil || other != want || (lock == nil) != (want != "") {
			t.Errorf("%s takes %s: got a lock: %t, the other run %q, %v; want %q", run, dir, lock != nil, other, err, want)
		}
		return lock
	}
	first := take("/ckpt/a", "first-run", "")
	take("/ckpt/a/", "2", "first-run")
	other := take("/ckpt/b", "2", "")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := take("/ckpt/a", "3", "")
	take("/ckpt/a", "4", "3")
	for _, l := range []*DirLock{other, again, nil} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
