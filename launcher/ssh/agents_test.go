package ssh

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/resumable"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/suite"
)

func TestSuite(t *testing.T) { suite.Run(t, newHosts(t).bed(t)) }

// TestProgramArrives checks that a missing or wrong program on a host is replaced. The right program must not be
// written again.
func TestProgramArrives(t *testing.T) {
	h := newHosts(t)
	p := gangrun(t)
	path := h.Path("cache/gangrun/" + p.Hash + "/gangrun")
	for _, test := range []struct {
		name string
		ruin func() error
		sent int
		note string
	}{
		{"missing", func() error { return nil }, 1, ""},
		{"there", func() error { return nil }, 0, ""},
		{"cut short", func() error { return replace(path, p.Size/2) }, 1, "was damaged"},
		{"empty", func() error { return replace(path, 0) }, 1, "was damaged"},
		{"another byte", func() error { return flip(path) }, 1, "was damaged"},
		{"a directory", func() error { return errors.Join(os.Remove(path), os.MkdirAll(path+"/x", 0o755)) }, 1, ""},
		{"not executable", func() error { return os.Chmod(path, 0o600) }, 1, ""},
		{"removed", func() error { return os.RemoveAll(h.Path("cache/gangrun")) }, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := test.ruin(); err != nil {
				t.Fatal(err)
			}
			sent, noted := 0, ""
			a := h.agents(t, func(_, text string) { noted += text })
			a.Program.Open = func() (io.ReadCloser, error) { sent++; return p.Open() }
			var at job.Agent
			a.Started = func(_ string, started job.Agent) { at = started }
			begun := time.Now()
			link, err := a.Dial(t.Context(), "h1")
			if err != nil {
				t.Fatal(err)
			}
			dialled := time.Since(begun)
			if err := link.End(t.Context()); err != nil {
				t.Error(err)
			}
			t.Logf("dialled in %s, ended %s later", dialled.Round(time.Millisecond), (time.Since(begun) - dialled).Round(time.Millisecond))
			if sent != test.sent || at.Program != path {
				t.Errorf("it was sent %d times and ran as %q; want %d and %q", sent, at.Program, test.sent, path)
			}
			if !strings.Contains(noted, test.note) || (noted == "") != (test.note == "") {
				t.Errorf("noted is %q, want %q", noted, test.note)
			}
			for deadline := time.Now().Add(sshtest.Longest); len(h.processes()) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("left are %v", h.processes())
				}
			}
		})
	}
}

// replace replaces a program by a file of zeros with another size. The kernel may still execute the old program.
func replace(path string, size int64) error {
	return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o755), os.Truncate(path, size))
}

// flip changes the last byte of a program, without changing its size or its time.
func flip(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	data[len(data)-1] ^= 1
	return errors.Join(os.Remove(path), os.WriteFile(path, data, 0o755), os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// TestExpected checks that end waits for an agent that may have received the end of the stream. It must not wait for
// an agent that counts as lost.
func TestExpected(t *testing.T) {
	for name, c := range map[string]struct {
		silence, timeout time.Duration
		want             bool
	}{
		"heard":              {0, 10 * time.Second, true},
		"silent":             {2 * retrySilent, 10 * time.Second, false},
		"lost":               {retrySilent - 100*time.Millisecond, 2 * time.Second, false},
		"not lost for so":    {retrySilent - 100*time.Millisecond, 10 * time.Second, true},
		"heard, short limit": {0, 2 * time.Second, true},
		"no limit":           {0, 0, true},
	} {
		if got := mayReceive(c.silence, c.timeout); got != c.want {
			t.Errorf("%s: expected %t, want %t", name, got, c.want)
		}
	}
}

// TestAgentKilledBeforeTheGang checks that a gang loses its host if the agent was killed before. The gang of the next
// attempt must have a new agent.
func TestAgentKilledBeforeTheGang(t *testing.T) {
	h := newHosts(t)
	hosts := []job.Host{{Name: "h1", Address: "127.0.0.1"}}
	l := launcher.New(launcher.Options{Dialer: h.agents(t, nil), Hosts: hosts, HostTimeout: 15 * time.Second, OrphanGrace: 20 * time.Second})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, unreached, err := l.Probe(t.Context()); err != nil || len(unreached) > 0 {
		t.Fatal(unreached, err)
	}
	run := func(number int) job.Outcome {
		o, err := l.Run(t.Context(), job.Attempt{
			Run: "test", Number: number, Command: []string{"true"}, MPI: job.MPIAuto, LogDir: t.TempDir(), Workdir: h.Dir,
			Placement: job.Placement{Hosts: hosts, Ranks: []job.Rank{{Host: "h1", LocalSize: 1}}},
		}, func(job.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	kill(t, some(t, func() []int { return h.processes()["agent"] }))
	if o := run(1); len(o.Exits) != 1 || o.Exits[0].Status != job.Lost || !strings.Contains(o.Exits[0].Text, agents.ErrGone.Error()) {
		t.Errorf("got %+v, want it lost: %v", o, agents.ErrGone)
	}
	if o := run(2); !o.Good(1) {
		t.Errorf("the next attempt: %+v", o)
	}
}

// TestEndOfAgentThatIsNotHeard checks that end returns an error if an agent still answers after its time, or if end
// could not wait for the agent.
func TestEndOfAgentThatIsNotHeard(t *testing.T) {
	h := newHosts(t)
	a := h.agents(t, nil)
	at, link := dialled(t, a)
	defer func() {
		if err := link.End(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	// The time of the agent begins when it is found, however late that is.
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

// dialled starts the agent of h1 and returns it with its link.
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

// given returns an agent on h1 that a has started, and whose last connection ended at left. According to its settings,
// the agent lives for the time lives after that.
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

// TestEndOfAgentThatWasFoundAgain checks an agent that is found once more before the line is cut again. It counts as
// ended when its time is over. That it was found once does not prove that it is still there.
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
	g := given(a, at, time.Now().Add(sshtest.Longest), lives) // its time begins when it is found
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- g.end(t.Context()) }()
	for range 3 { // the next questions have been answered, too
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
	kill(t, h.processes()["agent"]) // the agent may have ended by itself, because it has received nothing for so long
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
	const lives, rest = sshtest.Longest, 8 * time.Second // the agent is found before its time is over
	left := time.Now().Add(rest - lives)
	g := given(a, at, left, lives)
	ended := make(chan error, 1)
	go func() { ended <- g.end(t.Context()) }()
	select {
	case err := <-ended:
		t.Errorf("it ended early: %v", err)
		ended <- err
	case <-time.After(rest + 2*time.Second): // without that contact, the agent would have ended 2 s ago
	}
	kill(t, some(t, func() []int { return h.processes()["agent"] }))
	if err := <-ended; err != nil {
		t.Errorf("of one that has ended in time: %v", err)
	}
	if err := link.End(t.Context()); err != nil {
		t.Error(err)
	}
}
