package watchdog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKeeper checks that the files that the watchdog keeps stay locked when the agent is gone. Files that it was asked
// to drop must not stay locked.
func TestKeeper(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewKeeper(os.NewFile(uintptr(fds[0]), "agent"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	conn, err := newSocket(os.NewFile(uintptr(fds[1]), "watchdog"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { defer close(ended); (&keptFiles{kept: map[string][]int{}}).receive(conn) }()
	dir := t.TempDir()
	locked := func(name string) bool {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
	}
	for _, name := range []string{"a", "b"} {
		var fds []int
		var files []*os.File
		for range 2 * maxRights / 2 { // more than one message can have
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			files, fds = append(files, f), append(fds, int(f.Fd()))
		}
		if err := unix.Flock(fds[len(fds)-1], unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		if err := k.Keep(name, fds); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !locked("a") || !locked("b") {
		t.Error("a file that is kept is not locked")
	}
	k.Drop("a")
	for deadline := time.Now().Add(time.Minute); locked("a"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a file that was dropped is locked")
		}
	}
	if err := k.socket.file.Close(); err != nil { // the agent dies
		t.Fatal(err)
	}
	<-ended
	if !locked("b") {
		t.Error("a file that is kept was unlocked with the agent")
	}
}
