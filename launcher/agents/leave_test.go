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

// silent is the agent of a host that was heard last an hour ago, and that ends
// when it must.
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

// A silent agent that holds no gang is not waited for, and one that may hold one is,
// until somebody is in a hurry.
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

// The end of an agent that serves no more is waited for no longer than its host is
// wanted, and by Close after that.
func TestRetiredThatIsSilent(t *testing.T) {
	hurry := make(chan struct{})
	p := New(Options{OrphanGrace: time.Hour, Hurry: hurry})
	silent(t, p, "h1", true)
	p.RetireHeld()
	for range 2 { // whoever wants the host then waits for the same end
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

// errSilent names the host, for where nobody else does.
func TestErrSilent(t *testing.T) {
	err := errSilent{"h7", 6 * time.Second, errors.New("no route")}
	if got, want := err.Error(), "no contact with h7 for 6s: no route"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// muteDialer is of an agent that says nothing.
type muteDialer struct{ ended chan struct{} }

func (d muteDialer) Dial(context.Context, string) (Link, error) {
	ours, theirs := net.Pipe()
	return Link{Conn: ours, Local: true, End: func(context.Context) error {
		close(d.ended)
		return errors.Join(ours.Close(), theirs.Close())
	}}, nil
}

// An agent that does not say what it has is ended when the caller has enough.
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
