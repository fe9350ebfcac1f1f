package agents

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestWatch checks that an agent is given up only because of its silence. The error must give the silence at the time
// of the decision, even if the agent is heard later.
func TestWatch(t *testing.T) {
	g, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	long := make(chan struct{})
	first := time.Now().Add(-time.Hour) // before the watch began
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
	for deadline := time.Now().Add(2 * time.Minute); a.contact.judged.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not given up")
		}
	}
	close(long) // the agent is heard too late
	var told errSilent
	for range 2 {
		if err := a.Why(errors.New("closed")); !errors.As(err, &told) || told.silence <= limit || told.silence > limit+500*time.Millisecond { // one call of Since adds at most that much
			t.Errorf("told %v, want a silence of a little more than %s", err, limit)
		}
	}
	close(a.contact.stop)
	a.contact.watching.Wait()
}
