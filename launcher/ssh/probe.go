package ssh

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// probeLimit is how long a host has to answer a probe.
	probeLimit = 500 * time.Millisecond
	// probeEvery is the interval at which a host is probed.
	probeEvery = 100 * time.Millisecond
)

// answers reports whether the kernel of a host answers. It answers if it accepts a connection, or if it refuses the
// connection because only sshd is gone. answers returns true if ctx ends first. If this process was stopped meanwhile,
// answers asks again.
func answers(ctx context.Context, at netip.AddrPort) bool {
	for {
		if answered, paused := answersNow(ctx, at); answered || !paused {
			return answered
		}
	}
}

// answersNow is like answers, but asks only once. paused is true if this process was stopped for so long that it may
// not have read an answer that has arrived.
func answersNow(ctx context.Context, at netip.AddrPort) (answered, paused bool) {
	asking, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var dials sync.WaitGroup
	defer dials.Wait()
	defer cancel()
	answer := make(chan struct{}, 1)
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for looked := time.Now(); ; looked = time.Now() {
		dials.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(asking, "tcp", at.String())
			if err == nil {
				_ = conn.Close()
			}
			if err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
				select {
				case answer <- struct{}{}:
				default:
				}
			}
		})
		select {
		case <-answer:
			return true, false
		case <-asking.Done():
			return ctx.Err() != nil, paused || time.Since(looked) > probeLimit/2
		case <-again.C:
			paused = paused || time.Since(looked) > probeLimit/2
		}
	}
}

// probe asks a host again and again whether it answers, at growing intervals. When the host does not answer, probe
// closes silent. If there is no address, probe does nothing, and silent is nil.
func probe(ctx context.Context, at netip.AddrPort) (silent <-chan struct{}, stop func()) {
	if !at.IsValid() {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for wait := probeEvery; answers(ctx, at); wait = min(2*wait, time.Second) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		close(gone)
	}()
	return gone, func() { cancel(); <-done }
}
