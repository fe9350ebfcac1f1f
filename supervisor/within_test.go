package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneAsks: while a file system does not answer, a single goroutine asks it, however often something is to be found out. The
// next one asks when that has ended.
func TestOneAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, frozen, asked := make(turn, 1), make(chan struct{}), 0
		ask := func() (int, error) { asked++; <-frozen; return asked, nil }
		why := errors.New("it takes too long")
		for range 5 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
			if _, err := within(ctx, turn, ask); !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		time.AfterFunc(time.Second, func() { close(frozen) })
		if n, err := within(t.Context(), turn, ask); n != 2 || err != nil {
			t.Errorf("asked %d times, %v", n, err)
		}
	})
}
