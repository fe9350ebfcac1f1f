package agents

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// An agent is given up for its silence alone, and what is told of that is the silence
// that was judged, whatever is heard of it since.
func TestWatch(t *testing.T) {
	g, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	long := make(chan struct{})
	first := time.Now().Add(-time.Hour) // before it was watched
	a := &Agent{Host: "h2", grpc: g, contact: contact{stop: make(chan struct{})}, Link: Link{Heard: func() time.Time {
		select {
		case <-long:
			return time.Now()
		default:
			return first
		}
	}}}
	const limit = 3 * watchEvery
	a.contact.watching.Go(func() { a.watch(limit) })
	for deadline := time.Now().Add(30 * time.Second); a.contact.judged.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not given up")
		}
	}
	close(long) // it is heard, too late
	var told errSilent
	for range 2 {
		if err := a.Why(errors.New("closed")); !errors.As(err, &told) || told.silence <= limit || told.silence > limit+500*time.Millisecond { // the most that one call of Since adds
			t.Errorf("told %v, want a silence of a little more than %s", err, limit)
		}
	}
	close(a.contact.stop)
	a.contact.watching.Wait()
}
