package agents

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gangrun/gangrun/launcher/agents/agentstest"
)

// silent returns the agent of a host that was last heard an hour ago. The agent ends at the end of its time.
func silent(t *testing.T, p *Pool, host string, held bool) *Agent {
	t.Helper()
	g, err := grpc.NewClient("passthrough:///agent", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	heard := time.Now().Add(-time.Hour)
	a := &Agent{Host: host, grpc: g, contact: contact{stop: make(chan struct{})}, Link: Link{
		Held: held, Heard: func() time.Time { return heard },
		End: func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("%s may still have ranks: %w", host, context.Cause(ctx))
		},
	}}
	p.agents[host] = a
	return a
}

// TestCloseOfSilentAgents checks that Close does not wait for a silent agent that has no gang. It must wait for one
// that may have a gang, until the user is in a hurry.
func TestCloseOfSilentAgents(t *testing.T) {
	hurry := make(chan struct{})
	p := New(Options{OrphanGrace: time.Hour, Hurry: hurry})
	silent(t, p, "h1", false)
	p.spent[silent(t, p, "h2", true)] = true
	if err := agentstest.Soon(t, p.Close); err != nil {
		t.Errorf("of agents that hold nothing: %v", err)
	}

	hurry = make(chan struct{})
	p = New(Options{OrphanGrace: time.Hour, Hurry: hurry})
	silent(t, p, "h1", true)
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("it was not waited for: %v", err)
	case <-time.After(3 * watchEvery):
	}
	close(hurry)
	if err := agentstest.Soon(t, func() error { return <-closed }); !errors.Is(err, ErrNotAwaited) {
		t.Errorf("of an agent that may hold a gang: got %v, want %v", err, ErrNotAwaited)
	}
}

func TestDropOfSilentAgent(t *testing.T) {
	hurry := make(chan struct{})
	p := New(Options{OrphanGrace: time.Hour, Hurry: hurry})
	a := silent(t, p, "h1", false)
	close(hurry)
	if err := agentstest.Soon(t, func() error { return p.Drop(t.Context(), a) }); !errors.Is(err, ErrNotAwaited) {
		t.Errorf("got %v, want %v", err, ErrNotAwaited)
	}
}

// TestRetiredThatIsSilent checks that only callers that want the host wait for the end of an agent that no longer
// serves, and later Close.
func TestRetiredThatIsSilent(t *testing.T) {
	hurry := make(chan struct{})
	p := New(Options{OrphanGrace: time.Hour, Hurry: hurry})
	silent(t, p, "h1", true)
	p.RetireHeld()
	for range 2 { // each caller that wants the host waits for the same end
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*watchEvery, enough)
		if err := agentstest.Soon(t, func() error { _, err := p.Get(ctx, "h1"); return err }); !errors.Is(err, enough) {
			t.Errorf("got %v, want %v", err, enough)
		}
		cancel()
	}
	close(hurry)
	err := agentstest.Soon(t, func() error { _, err := p.Get(t.Context(), "h1"); return err })
	if !errors.Is(err, ErrNotAwaited) || len(Unreachable(err)) != 1 {
		t.Errorf("got %v, want that h1 cannot be used: %v", err, ErrNotAwaited)
	}
	if err := agentstest.Soon(t, p.Close); err != nil {
		t.Errorf("of an agent that was given up: %v", err)
	}

	hurry = make(chan struct{})
	p = New(Options{OrphanGrace: time.Hour, Hurry: hurry})
	silent(t, p, "h1", true)
	p.RetireHeld()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = p.Get(ctx, "h1")
	close(hurry)
	if err := agentstest.Soon(t, p.Close); !errors.Is(err, ErrNotAwaited) {
		t.Errorf("of one whose end is still waited for: got %v, want %v", err, ErrNotAwaited)
	}
}

// TestErrSilent checks that errSilent names the host, because callers may not name it.
func TestErrSilent(t *testing.T) {
	err := errSilent{"h7", 6 * time.Second, errors.New("no route")}
	if got, want := err.Error(), "no contact with h7 for 6s: no route"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// muteDialer returns an agent that never answers.
type muteDialer struct{ ended chan struct{} }

func (d muteDialer) Dial(context.Context, string) (Link, error) {
	ours, theirs := net.Pipe()
	return Link{Conn: ours, Local: true, End: func(context.Context) error {
		close(d.ended)
		return errors.Join(ours.Close(), theirs.Close())
	}}, nil
}

// TestHelloThatIsNotAnswered checks that an agent that does not answer Hello is ended when ctx ends.
func TestHelloThatIsNotAnswered(t *testing.T) {
	d := muteDialer{make(chan struct{})}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	err := agentstest.Soon(t, func() error {
		_, err := connect(ctx, Options{Dialer: d}, "h1")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
	<-d.ended
}
