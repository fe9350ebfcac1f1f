package queue

import (
	"slices"
	"testing"
	"testing/synctest"
)

func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		q := New(func(n int) { got = append(got, n) })
		for n := range 1000 {
			q.Put(n)
		}
		<-q.Close()
		<-q.Close()
		if len(got) != 1000 || !slices.IsSorted(got) {
			t.Errorf("%d values came, sorted %v", len(got), slices.IsSorted(got))
		}
	})
}

// TestBlockedConsumer checks that a blocked consumer does not block goroutines that call Put.
func TestBlockedConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var got []string
		q := New(func(s string) { <-release; got = append(got, s) })
		q.Put("a")
		synctest.Wait()
		q.Put("b")
		q.Put("c")
		if n := q.Len(); n != 2 {
			t.Errorf("%d values wait, want 2", n)
		}
		done := q.Close()
		select {
		case <-done:
			t.Error("the queue is done while its consumer blocks")
		default:
		}
		close(release)
		<-done
		if !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestNothingPut(t *testing.T) {
	synctest.Test(t, func(*testing.T) { <-New(func(int) {}).Close() })
}
