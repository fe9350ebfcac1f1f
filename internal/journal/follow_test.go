package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
)

// followers are Follow with inotify and, where that is used up, without.
var followers = map[string]func(context.Context, string, int64, func(job.Event)) (int64, error){
	"notified": journal.Follow,
	"polling":  journal.FollowPolling,
}

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
			seen := make(chan int)
			type result struct {
				offset int64
				err    error
			}
			end := make(chan result, 1)
			go func() {
				offset, err := follow(t.Context(), path, 0, func(e job.Event) { seen <- e.Rank })
				end <- result{offset, err}
			}()
			for i := range before {
				if got := <-seen; got != i {
					t.Fatalf("event %d is number %d", i, got)
				}
			}
			// One at a time: the follower has to see each one come.
			for i := before; i < before+after; i++ {
				e := numbered(i)
				if i == before+after-1 {
					e.Kind = job.KindEnded
				}
				if err := j.Append(e); err != nil {
					t.Fatal(err)
				}
				if got := <-seen; got != i {
					t.Fatalf("event %d is number %d", i, got)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := <-end; got.err != nil || got.offset != info.Size() {
				t.Errorf("Follow returned %d (%v), want the file's end %d", got.offset, got.err, info.Size())
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

// TestFollowTornLine holds that half a line is waited for, and one that its
// writer took back is not seen.
func TestFollowTornLine(t *testing.T) {
	for name, follow := range followers {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/journal.jsonl"
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			var last atomic.Int64
			seen := make(chan int)
			end := make(chan error, 1)
			go func() {
				_, err := follow(t.Context(), path, 0, func(e job.Event) { last.Store(int64(e.Rank)); seen <- e.Rank })
				end <- err
			}()
			write := func(text string) {
				if _, err := file.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			write(`{"kind":"note","rank":1}` + "\n" + `{"kind":"note",`)
			if got := <-seen; got != 1 {
				t.Fatalf("saw event %d, want 1", got)
			}
			whole := int64(len(`{"kind":"note","rank":1}`) + 1)
			if _, err := file.Seek(whole, 0); err != nil {
				t.Fatal(err)
			}
			if err := file.Truncate(whole); err != nil {
				t.Fatal(err)
			}
			write("not an event\n" + `{"kind":"note","rank":2}` + "\n" + `{"kind":"ended","rank"`)
			if got := <-seen; got != 2 {
				t.Fatalf("saw event %d, want 2", got)
			}
			write(":3}\n")
			if got := <-seen; got != 3 {
				t.Fatalf("saw event %d, want 3", got)
			}
			if err := <-end; err != nil {
				t.Error(err)
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
