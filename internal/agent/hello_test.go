package agent

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/topology/lease"
)

// TestHelloBesideRequests checks that a new controller may greet the agent while the agent still answers requests of
// the earlier controller. The race detector must find no data race.
func TestHelloBesideRequests(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	s := newServer(processtest.New(t), nil, &link{})
	t.Cleanup(s.end)
	survey, err := json.Marshal(job.Survey{Command: []string{"no-such-program"}, Workdir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(lease.Request{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	requests := map[string]func(context.Context) error{
		"hello": func(ctx context.Context) error {
			_, err := s.Hello(ctx, &wire.HelloRequest{Host: "h1", Tmpdir: []byte(dir), Env: [][]byte{[]byte("PATH=" + dir), []byte(lease.Env + "=" + dir)}})
			return err
		},
		"devices": func(ctx context.Context) error {
			_, err := s.Devices(ctx, &wire.DevicesRequest{})
			return err
		},
		"library": func(ctx context.Context) error {
			_, err := s.Library(ctx, &wire.LibraryRequest{Argv: [][]byte{[]byte("no-such-program")}, Workdir: []byte(dir)})
			return err
		},
		"survey": func(ctx context.Context) error {
			_, err := s.Survey(ctx, &wire.SurveyRequest{Survey: survey})
			return err
		},
		"lease": func(ctx context.Context) error {
			_, _ = s.LeaseTry(ctx, &wire.LeaseTryRequest{Turn: "t1", Request: request}) // the request may be refused
			return nil
		},
	}
	var wg sync.WaitGroup
	for name, request := range requests {
		wg.Go(func() {
			for range 20 {
				if err := request(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
}
