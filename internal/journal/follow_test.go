package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
)

// followers has Follow with inotify, and without, as if there were no inotify instances left.
var followers = map[string]func(context.Context, string, int64, func(job.Event)) (int64, error){
	"notified": journal.Follow,
	"polling":  journal.FollowPolling,
}

// following is a running Follow. At each event, it waits until the test lets it go on.
type following struct {
	seen   chan int // gets the rank of each event
	on     chan struct{}
	end    chan struct{} // is closed when Follow has returned
	offset int64
	err    error
}

func newFollowing(t *testing.T, follow func(context.Context, string, int64, func(job.Event)) (int64, error), path string) *following {
	f := &following{seen: make(chan int), on: make(chan struct{}), end: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(f.end)
		f.offset, f.err = follow(ctx, path, 0, func(e job.Event) {
			select {
			case f.seen <- e.Rank:
				<-f.on
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-f.end })
	return f
}

// next waits for an event, which must have the number want. It calls meanwhile before Follow goes on.
func (f *following) next(t *testing.T, want int, meanwhile func()) {
	t.Helper()
	select {
	case got := <-f.seen:
		meanwhile()
		f.on <- struct{}{}
		if got != want {
			t.Fatalf("saw event %d, want %d", got, want)
		}
	case <-f.end:
		t.Fatalf("Follow returned %v, want event %d first", f.err, want)
	case <-time.After(time.Minute):
		t.Fatalf("event %d is not seen", want)
	}
}

// ended waits until Follow has returned.
func (f *following) ended(t *testing.T) {
	t.Helper()
	select {
	case <-f.end:
	case got := <-f.seen:
		f.on <- struct{}{}
		t.Fatalf("saw event %d after the last", got)
	case <-time.After(time.Minute):
		t.Fatal("Follow does not return")
	}
}

func nothing() {}

func TestFollow(t *testing.T) {
	for name, follow := range followers {
		t.Run(name, func(t *testing.T) {
			j, path := create(t)
			const before, after = 20, 5
			for i := range before {
				if err := j.Append(numbered(i)); err != nil {
					t.Fatal(err)
				}
			}
			f := newFollowing(t, follow, path)
			for i := range before {
				f.next(t, i, nothing)
			}
			// The events are appended one at a time, because the follower must notice each of them.
			for i := before; i < before+after; i++ {
				e := numbered(i)
				if i == before+after-1 {
					e.Kind = job.KindEnded
				}
				if err := j.Append(e); err != nil {
					t.Fatal(err)
				}
				f.next(t, i, nothing)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if f.ended(t); f.err != nil || f.offset != info.Size() {
				t.Errorf("Follow returned %d (%v), want the file's end %d", f.offset, f.err, info.Size())
			}
		})
	}
}

func TestFollowGoesOnWhereItStopped(t *testing.T) {
	j, path := create(t)
	defer j.Close()
	for i := range 100 {
		if err := j.Append(numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	var offset int64
	next := 0
	for next < 100 {
		ctx, cancel := context.WithCancel(t.Context())
		stop := next + 7
		var err error
		offset, err = journal.Follow(ctx, path, offset, func(e job.Event) {
			if e.Rank != next {
				t.Fatalf("event %d stands where %d should", e.Rank, next)
			}
			if next++; next == stop || next == 100 {
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("Follow returned %v, want context.Canceled", err)
		}
	}
}

// TestFollowTornLine checks that Follow waits for the rest of an incomplete line. If the writer removes the incomplete
// line, Follow must not emit it.
func TestFollowTornLine(t *testing.T) {
	for name, follow := range followers {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/journal.jsonl"
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			write := func(text string) {
				t.Helper()
				if _, err := file.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			f := newFollowing(t, follow, path)
			write(`{"kind":"note","rank":1}` + "\n" + `{"kind":"note",`)
			whole := int64(len(`{"kind":"note","rank":1}`) + 1)
			f.next(t, 1, func() { // Follow has read the incomplete line by now
				if _, err := file.Seek(whole, 0); err != nil {
					t.Error(err)
				}
				if err := file.Truncate(whole); err != nil {
					t.Error(err)
				}
				write("not an event\n" + `{"kind":"note","rank":2}` + "\n" + `{"kind":"ended","rank"`)
			})
			f.next(t, 2, nothing)
			write(":3}\n")
			f.next(t, 3, nothing)
			if f.ended(t); f.err != nil {
				t.Error(f.err)
			}
		})
	}
}

// TestFollowHearsOut checks that Follow emits the events that a file had when it was removed.
func TestFollowHearsOut(t *testing.T) {
	for name, follow := range followers {
		t.Run(name, func(t *testing.T) {
			j, path := create(t)
			defer j.Close()
			if err := j.Append(numbered(0)); err != nil {
				t.Fatal(err)
			}
			f := newFollowing(t, follow, path)
			f.next(t, 0, func() {
				last := numbered(1)
				last.Kind = job.KindEnded
				if err := errors.Join(j.Append(last), os.Remove(path)); err != nil {
					t.Error(err)
				}
			})
			f.next(t, 1, nothing)
			if f.ended(t); f.err != nil {
				t.Error(f.err)
			}
		})
	}
}

func TestFollowEndsWithItsFile(t *testing.T) {
	j, path := create(t)
	defer j.Close()
	if err := j.Append(numbered(0)); err != nil {
		t.Fatal(err)
	}
	_, err := journal.Follow(t.Context(), path, 0, func(job.Event) {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Follow returned %v for a removed file, want fs.ErrNotExist", err)
	}
	if _, err := journal.Follow(t.Context(), path, 0, func(job.Event) {}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Follow returned %v for a missing file, want fs.ErrNotExist", err)
	}
}

func ExampleScan() {
	file, err := os.CreateTemp("", "journal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	defer file.Close()
	file.WriteString(`{"kind":"state","state":"running"}` + "\n" + `{"kind":"note","text":"cut sh`)
	file.Seek(0, 0)
	journal.Scan(file, func(e job.Event) bool {
		fmt.Println(e.Kind, e.State)
		return true
	})
	// Output: state running
}
