package ssh

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/resumable"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

// TestEndOfAgentThatIsNotHeard: an agent that answers beyond its time is an error,
// and so is one that nobody has waited for.
func TestEndOfAgentThatIsNotHeard(t *testing.T) {
	h := newHosts(t)
	a := h.agents(t, nil)
	at, link := dialled(t, a)
	defer func() {
		if err := link.End(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	// It has its time from when it is found, however long that takes.
	if err := given(a, at, time.Now().Add(sshtest.Longest), 2*time.Second).end(t.Context()); err == nil || !strings.Contains(err.Error(), "is still there") {
		t.Errorf("of one that lives on: %v", err)
	}
	hurried, hurry := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	hurry(enough)
	g := given(a, at, time.Now(), time.Hour+endSlack)
	if err := g.end(hurried); !errors.Is(err, enough) || !strings.Contains(err.Error(), "until "+g.left.Add(time.Hour+endSlack).Format(time.TimeOnly)) {
		t.Errorf("of one that nobody waits for: %v", err)
	}
}

// dialled starts the agent of h1.
func dialled(t *testing.T, a *Agents) (at job.Agent, link agents.Link) {
	t.Helper()
	kept := a.Started
	a.Started = func(host string, started job.Agent) { kept(host, started); at = started }
	link, err := a.Dial(t.Context(), "h1")
	if err != nil {
		t.Fatal(err)
	}
	return at, link
}

// given is an agent on h1 that was started by a, and was carried until left; it lives
// for lives after that, if it is to be believed.
func given(a *Agents, at job.Agent, left time.Time, lives time.Duration) *agent {
	others := *a
	others.OrphanGrace = lives - endSlack
	g := &agent{
		agents: &others, host: "h1", at: at, stream: resumable.New(resumable.Options{ID: resumable.NewID()}),
		ended: make(chan struct{}), cancel: func() {}, left: left,
	}
	close(g.ended)
	return g
}

// TestEndOfAgentThatWasFoundAgain: an agent that was there for a moment, on a line that
// is cut again, has ended as soon as it must have; that it was there once is no answer.
func TestEndOfAgentThatWasFoundAgain(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	a := h.agents(t, nil)
	a.OrphanGrace = sshtest.Longest
	at, link := dialled(t, a)
	asked := make(chan struct{}, 1000)
	counted := client(h.Site)
	counted.Target = func(host string) string { asked <- struct{}{}; return host }
	a.Dialer = counted
	const lives = 10 * time.Second
	g := given(a, at, time.Now().Add(sshtest.Longest), lives) // it has its time from when it is found
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- g.end(t.Context()) }()
	for range 3 { // whoever asks again has been answered
		select {
		case <-asked:
		case err := <-ended:
			t.Fatalf("after %s: %v", time.Since(begun), err)
		}
	}
	h.proxy.set(true)
	err := <-ended
	took := time.Since(begun)
	h.proxy.set(false)
	if err != nil || took < lives {
		t.Errorf("after %s: %v; want %s at least", took, err, lives)
	}
	kill(t, h.processes()["agent"]) // it may have ended by itself, because it has received nothing for so long
	if err := link.End(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndOfAgentThatHearsLate: an agent that is found again may have received delayed data until
// then, so its orphan grace counts from that time.
func TestEndOfAgentThatHearsLate(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	a := h.agents(t, nil)
	at, link := dialled(t, a)
	const lives, rest = sshtest.Longest, 8 * time.Second // it is found within the rest of its time
	left := time.Now().Add(rest - lives)
	g := given(a, at, left, lives)
	ended := make(chan error, 1)
	go func() { ended <- g.end(t.Context()) }()
	select {
	case err := <-ended:
		t.Errorf("it ended early: %v", err)
		ended <- err
	case <-time.After(rest + 2*time.Second): // it was to have ended 2 s ago
	}
	kill(t, some(t, func() []int { return h.processes()["agent"] }))
	if err := <-ended; err != nil {
		t.Errorf("of one that has ended in time: %v", err)
	}
	if err := link.End(t.Context()); err != nil {
		t.Error(err)
	}
}
