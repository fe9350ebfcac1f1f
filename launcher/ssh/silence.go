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

// answerLimit is within which a host must answer that has closed its connections,
// and answerEvery how often it is asked: its kernel refuses a connection at once
// where only its sshd is gone.
const answerLimit, answerEvery = 500 * time.Millisecond, 100 * time.Millisecond

// answers reports whether a host's kernel answers at all, with a connection or its
// refusal; true where ctx ends first. It asks anew where this process was stopped
// meanwhile.
func answers(ctx context.Context, at netip.AddrPort) bool {
	for {
		if answered, stood := answersNow(ctx, at); answered || !stood {
			return answered
		}
	}
}

// answersNow is answers without that: stood says that this process has stood still for
// so long that an answer may be there unread.
func answersNow(ctx context.Context, at netip.AddrPort) (answered, stood bool) {
	asking, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var questions sync.WaitGroup
	defer questions.Wait()
	defer cancel()
	heard := make(chan struct{}, 1)
	again := time.NewTicker(answerEvery)
	defer again.Stop()
	for looked := time.Now(); ; looked = time.Now() {
		questions.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(asking, "tcp", at.String())
			if err == nil {
				_ = conn.Close()
			}
			if err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
				select {
				case heard <- struct{}{}:
				default:
				}
			}
		})
		select {
		case <-heard:
			return true, false
		case <-asking.Done():
			return ctx.Err() != nil, stood || time.Since(looked) > answerLimit/2
		case <-again.C:
			stood = stood || time.Since(looked) > answerLimit/2
		}
	}
}

// askUntilSilent asks a host whether it answers, ever more seldom, and closes
// silent when it does not. One that is reached through another host is not asked.
func askUntilSilent(ctx context.Context, at netip.AddrPort) (silent <-chan struct{}, stop func()) {
	if !at.IsValid() {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for wait := answerEvery; answers(ctx, at); wait = min(2*wait, time.Second) {
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
