package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOne checks that only one call runs at a time. Callers give up at the end of their ctx. The next call is made
// when the first one has ended.
func TestOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, frozen, calls := New(), make(chan struct{}), 0
		call := func() (int, error) { calls++; <-frozen; return calls, nil }
		why := errors.New("it takes too long")
		began := time.Now()
		for range 5 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
			if _, err := Do(ctx, turn, 0, call); !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %s", took)
		}
		time.AfterFunc(time.Second, func() { close(frozen) })
		if n, err := Do(t.Context(), turn, 0, call); n != 2 || err != nil {
			t.Errorf("%d calls, %v", n, err)
		}
	})
}

// TestSlack checks that the result of a call is returned if the call ends within slack after the end of ctx.
func TestSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for slack, want := range map[time.Duration]int{time.Second: 7, time.Millisecond: 0} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			n, err := Do(ctx, New(), slack, func() (int, error) {
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond)
				return 7, nil
			})
			if n != want || (err == nil) != (want == 7) {
				t.Errorf("slack %s: %d, %v", slack, n, err)
			}
			cancel()
		}
		time.Sleep(time.Second) // lets the remaining calls end
	})
}
