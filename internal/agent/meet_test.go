package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// fakeMeeting is the stream of a Meet call.
type fakeMeeting struct {
	grpc.ServerStream
	ctx context.Context
	in  chan *wire.MeetRequest
	out chan *wire.MeetReply
}

func (m *fakeMeeting) Context() context.Context { return m.ctx }
func (m *fakeMeeting) Recv() (*wire.MeetRequest, error) {
	r, ok := <-m.in
	if !ok {
		return nil, io.EOF
	}
	return r, nil
}
func (m *fakeMeeting) Send(r *wire.MeetReply) error { m.out <- r; return nil }

// TestMeet lets two hosts meet. Each must reach the port and see the file of the other. Nothing may be left.
func TestMeet(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var streams [2]*fakeMeeting
	for i, host := range []string{"h1", "h2"} {
		s := newServer(nil, nil, &link{})
		s.settings.host = host
		streams[i] = &fakeMeeting{ctx: t.Context(), in: make(chan *wire.MeetRequest, 2), out: make(chan *wire.MeetReply, 2)}
		wg.Go(func() {
			if err := s.Meet(streams[i]); err != nil {
				t.Error(err)
			}
		})
		streams[i].in <- &wire.MeetRequest{Secret: []byte("the secret of this meeting"), Address: "127.0.0.1", Dir: []byte(dir)}
	}
	peers := make([]*wire.Peer, 2)
	for i, host := range []string{"h1", "h2"} {
		r := <-streams[i].out
		if r.Port == 0 || !r.Wrote || r.Error != "" {
			t.Errorf("got %+v", r)
		}
		peers[i] = &wire.Peer{Host: host, Address: "127.0.0.1", Port: r.Port, Wrote: r.Wrote}
	}
	for i, s := range streams {
		s.in <- &wire.MeetRequest{Peers: []*wire.Peer{peers[1-i]}}
	}
	for i, s := range streams {
		r := <-s.out
		var reach []job.ReachFact
		var shared job.SharedFact
		if err := errors.Join(json.Unmarshal(r.Reach, &reach), json.Unmarshal(r.Shared, &shared)); err != nil {
			t.Fatal(err)
		}
		if len(reach) != 1 || reach[0].To != peers[1-i].Host || reach[0].Error != "" || !slices.Equal(shared.Sees, []string{"h1", "h2"}) {
			t.Errorf("got %+v, %+v", reach, shared)
		}
	}
	streams[0].in <- &wire.MeetRequest{Link: peers[1]}
	var speeds []job.Speed
	if err := json.Unmarshal((<-streams[0].out).Speeds, &speeds); err != nil || len(speeds) != 3 {
		t.Errorf("the link is %+v, %v", speeds, err)
	}
	for _, s := range speeds {
		if s.Value <= 0 || s.Error != "" {
			t.Errorf("the link is %+v", s)
		}
	}
	for _, s := range streams {
		close(s.in)
	}
	wg.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	s := &fakeMeeting{ctx: t.Context(), in: make(chan *wire.MeetRequest, 1), out: make(chan *wire.MeetReply)}
	s.in <- &wire.MeetRequest{}
	if err := newServer(nil, nil, &link{}).Meet(s); err == nil {
		t.Error("hosts met without a secret")
	}
}
