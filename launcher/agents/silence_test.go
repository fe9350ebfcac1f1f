package agents

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// What counts is the time that this process has lived through, by looks in tenths of
// seconds.
func TestSilenceMeter(t *testing.T) {
	const tenth = 100 * time.Millisecond
	for name, c := range map[string]struct {
		looks []int       // when, in tenths
		heard map[int]int // from a look on, when something was heard last
		want  int
		gap   int // the last time that this process stood still
	}{
		"first look":                {looks: []int{36000}, want: 36000},
		"silent":                    {looks: []int{0, 1, 2, 3, 4, 5, 6, 7}, want: 7},
		"looked at by many":         {looks: []int{0, 1, 1, 2, 2, 2, 3}, want: 3},
		"by one who is late":        {looks: []int{0, 1, 3, 2, 4}, want: 4},
		"heard":                     {looks: []int{0, 1, 2, 3, 4}, heard: map[int]int{2: 2}, want: 2},
		"heard, and told late":      {looks: []int{0, 1, 2, 3, 4}, heard: map[int]int{3: 2}, want: 2},
		"stopped":                   {looks: []int{0, 1, 2, 150, 151}, want: 2 + 5 + 1, gap: 148},
		"stopped again":             {looks: []int{0, 1, 150, 151, 300, 301}, want: 1 + 5 + 1 + 5 + 1, gap: 149},
		"stopped just after a word": {looks: []int{0, 2, 150, 151}, heard: map[int]int{150: 3}, want: 5 + 1, gap: 148},
		"stopped, and heard since":  {looks: []int{0, 1, 150, 152}, heard: map[int]int{152: 151}, want: 1, gap: 149},
		"overloaded":                {looks: []int{0, 4, 8, 12, 16}, want: 16},
	} {
		var v SilenceMeter
		epoch := time.Now()
		var got time.Duration
		heard := epoch
		for _, at := range c.looks {
			if h, ok := c.heard[at]; ok {
				heard = epoch.Add(time.Duration(h) * tenth)
			}
			got = v.at(epoch.Add(time.Duration(at)*tenth), heard)
		}
		if got != time.Duration(c.want)*tenth {
			t.Errorf("%s: %s, want %s", name, got, time.Duration(c.want)*tenth)
		}
		if gap, woke := v.Gap(); gap != time.Duration(c.gap)*tenth || woke.IsZero() != (c.gap == 0) {
			t.Errorf("%s: stood still for %s until %s, want %s", name, gap, woke, time.Duration(c.gap)*tenth)
		}
	}
}

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
		if err := a.Why(errors.New("closed")); !errors.As(err, &told) || told.silence <= limit || told.silence > limit+maxStep {
			t.Errorf("told %v, want a silence of a little more than %s", err, limit)
		}
	}
	close(a.contact.stop)
	a.contact.watching.Wait()
}
