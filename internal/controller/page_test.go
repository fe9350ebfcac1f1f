package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPageTime: when the user has no time, the page may take a second from then on, and no longer.
func TestPageTime(t *testing.T) {
	for _, c := range []struct{ hurry, want time.Duration }{
		{0, hurriedPageLimit}, {3 * time.Second, 3*time.Second + hurriedPageLimit}, {time.Hour, pageLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			hurried, hurry := context.WithCancel(t.Context())
			defer hurry()
			timer := time.AfterFunc(c.hurry, hurry)
			defer timer.Stop()
			began := time.Now()
			ctx, cancel := pageTime(hurried)
			defer cancel()
			<-ctx.Done()
			if took := time.Since(began); took != c.want {
				t.Errorf("in a hurry after %s, it may take %s, want %s", c.hurry, took, c.want)
			}
		})
	}
}
