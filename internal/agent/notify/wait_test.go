package notify

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWait checks that a wait returns when a change comes in time, and otherwise at the limit.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, done := time.Now(), make(chan struct{})
		time.AfterFunc(time.Second, func() { close(done) })
		if !Wait(done, time.Minute) || time.Since(begun) != time.Second {
			t.Errorf("after %s it has not come", time.Since(begun))
		}
		begun = time.Now()
		if Wait(nil, time.Minute) || time.Since(begun) != time.Minute {
			t.Errorf("waited for %s, want the limit", time.Since(begun))
		}
	})
}
