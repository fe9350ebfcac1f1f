package tempfiles

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/identity"
)

func TestScanShared(t *testing.T) {
	const text = `7f0000000000-7f0000001000 rw-s 00000000 00:1b 42                         /dev/shm/ucx_shm_posix_1
7f0000001000-7f0000002000 rw-s 00000000 00:1b 43                         /dev/shm/mpich_shar_tmpAbC (deleted)
7f0000002000-7f0000003000 rw-s 00000000 103:0a 44                        /dev/shm/vader_segment.h1.0.1
7f0000003000-7f0000004000 rw-s 00000000 00:1b 45                         /dev/shm/the-jobs-own
7f0000004000-7f0000005000 rw-s 00000000 00:1b 46                         /dev/shm/sub/ucx_shm_posix_2
7f0000005000-7f0000006000 r-xp 00000000 08:01 47                         /opt/dev/shm/ucx_shm_posix_3
7f0000006000-7f0000007000 rw-p 00000000 00:00 0
`
	want := map[string]fileID{
		"/dev/shm/ucx_shm_posix_1":      {0, 0x1b, 42},
		"/dev/shm/vader_segment.h1.0.1": {0x103, 0x0a, 44},
	}
	if got := scanShared(strings.NewReader(text)); !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// TestSweep checks that a file is removed only if it is the file that was mapped, and not another file of the same
// name.
func TestSweep(t *testing.T) {
	name := func(what string) string {
		return filepath.Join(SharedDir, "ucx_shm_test_"+what+"_"+filepath.Base(filepath.Dir(t.TempDir())))
	}
	seen, replaced, unseen, open := name("seen"), name("replaced"), name("unseen"), name("open")
	var s SharedMemory
	s.mapped = map[string]fileID{}
	for _, path := range []string{seen, replaced, unseen, open} {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(path) })
		var stat unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
			t.Fatal(err)
		}
		if path != unseen {
			s.mapped[path] = fileID{unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino}
		}
		if path == open {
			defer file.Close()
		} else if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(unseen, replaced); err != nil { // another file now has this name
		t.Fatal(err)
	}
	s.Remove(time.Now().Add(time.Hour))
	if _, err := os.Stat(seen); err != nil {
		t.Errorf("a file from before the gang is gone: %v", err)
	}
	s.Remove(time.Now().Add(-time.Hour))
	if _, err := os.Stat(seen); !os.IsNotExist(err) {
		t.Errorf("the gang's file is still there (%v)", err)
	}
	for _, path := range []string{replaced, open} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s is gone: %v", path, err)
		}
	}
}

// TestProbes checks that the empty file is removed that a killed rank of Open MPI has left at its start. It must stay
// if it is older than the gang, in use, or not empty.
func TestProbes(t *testing.T) {
	file := func(what, text string) (string, *os.File) {
		path := filepath.Join(SharedDir, "open_mpi.test_"+what+"_"+filepath.Base(filepath.Dir(t.TempDir())))
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(path) })
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return path, f
	}
	left, f := file("left", "")
	full, g := file("full", "x")
	open, h := file("open", "")
	defer h.Close()
	if err := errors.Join(f.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	var s SharedMemory
	s.Remove(time.Now().Add(time.Hour))
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a file from before the gang is gone: %v", err)
	}
	s.Remove(time.Now().Add(-time.Minute))
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the gang's file is still there (%v)", err)
	}
	for _, path := range []string{full, open} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s is gone: %v", path, err)
		}
	}
}

// TestOtherNamespace checks that the files of an agent in another PID namespace are not removed, even if it has the
// same PID.
func TestOtherNamespace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const agent = 1 << 30 // no process has this PID
	mine, err := os.MkdirTemp("", Prefix(agent))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.MkdirTemp("", strings.Replace(Prefix(agent), "."+identity.PIDNamespace(), ".1", 1))
	if err != nil {
		t.Fatal(err)
	}
	Remove(agent)
	if _, err := os.Stat(mine); !os.IsNotExist(err) {
		t.Errorf("the agent's own directory is still there (%v)", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another agent's directory is gone: %v", err)
	}
}

// TestDeadDirectories checks that a starting agent removes the directories of agents that were killed with their
// watchdogs. The directories of live agents must stay.
func TestDeadDirectories(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var paths []string
	for _, agent := range []int{1 << 30, os.Getpid()} { // no process has the first PID
		short, err := os.MkdirTemp("", Prefix(agent))
		if err != nil {
			t.Fatal(err)
		}
		self := linkDir(fmt.Sprintf("test-%d-%d/1", os.Getpid(), agent))
		t.Cleanup(func() { _ = os.RemoveAll(self) })
		if err := errors.Join(os.Mkdir(self, 0o700), os.WriteFile(filepath.Join(self, ownerFile(agent)), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, short, self)
	}
	RemoveDead()
	for i, path := range paths {
		if _, err := os.Stat(path); os.IsNotExist(err) != (i < 2) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
