package launcher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/lifecycle"
)

// launch returns a Launcher for four hosts. It is closed at the end of the test.
func launch(t *testing.T, f *fakeHosts) *Launcher {
	t.Helper()
	f.ended = map[string]bool{}
	l := New(Options{Dialer: f, Hosts: fourHosts(), HostTimeout: time.Minute})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// attempt returns an attempt with one rank on each of h1 and h2.
func attempt(mpi job.MPI) job.Attempt {
	return job.Attempt{Number: 1, Run: "r", MPI: mpi, Command: []string{"true"}, Placement: job.Placement{
		Hosts: fourHosts()[:2], Ranks: []job.Rank{{Rank: 0, Host: "h1"}, {Rank: 1, Host: "h2", Node: 1}},
	}}
}

// TestLostBeforeTheGang checks that a host cannot be reached if its agent dies during a call before the gang runs.
// This must not count as a failure of gangrun itself.
func TestLostBeforeTheGang(t *testing.T) {
	for _, c := range []struct{ call, host string }{{"Hello", "h2"}, {"Survey", "h2"}, {"Meet", "h3"}} {
		l := launch(t, &fakeHosts{dead: map[string]string{c.host: c.call}})
		_, err := l.Survey(t.Context(), fourHosts(), job.Survey{Command: []string{"true"}, CheckpointDir: "/c"})
		away := slices.Collect(maps.Keys(agents.Unreachable(err)))
		if !slices.Equal(away, []string{c.host}) || !strings.Contains(err.Error(), agents.ErrAgentGone.Error()) && c.call != "Hello" {
			t.Errorf("%s on %s: got %v, not reached %v", c.call, c.host, err, away)
		}
	}
	for name, c := range map[string]struct {
		hosts *fakeHosts
		mpi   job.MPI
		text  string
	}{
		"port":    {&fakeHosts{dead: map[string]string{"h1": "Port"}}, job.MPINone, agents.ErrAgentGone.Error()},
		"library": {&fakeHosts{dead: map[string]string{"h1": "Library"}}, job.MPIAuto, agents.ErrAgentGone.Error()},
		"hello":   {&fakeHosts{dead: map[string]string{"h1": "Hello"}}, job.MPINone, "the agent on h1 ended before it answered"},
		"no port": {&fakeHosts{full: true}, job.MPINone, "too many open files"},
	} {
		l := launch(t, c.hosts)
		run := func() (job.Outcome, error) { return l.Run(t.Context(), attempt(c.mpi), func(job.Event) {}) }
		o, err := run()
		if err != nil || len(o.Exits) != 2 || o.Exits[0].Status != job.Lost || !strings.Contains(o.Exits[0].Text, c.text) || !o.Exits[1].Stopped {
			t.Errorf("%s: got %+v, %v; want that h1 is lost: %s", name, o.Exits, err, c.text)
		}
		if _, err := run(); err != nil {
			t.Errorf("%s: tried again: %v", name, err)
		}
		if c.hosts.dials["h1"] != 2 || c.hosts.dials["h2"] != 1 {
			t.Errorf("%s: tried again, agents were started %v times, want another on h1 alone", name, c.hosts.dials)
		}
	}
}

// TestLostHereBeforeTheGang checks that there is an error if that happens on the controller's own machine, because no
// other host can be used.
func TestLostHereBeforeTheGang(t *testing.T) {
	l := launch(t, &fakeHosts{local: true, dead: map[string]string{"h1": "Port"}})
	o, err := l.Run(t.Context(), attempt(job.MPINone), func(job.Event) {})
	if !errors.Is(err, agents.ErrAgentGone) || agents.Unreachable(err) != nil {
		t.Errorf("got %+v, %v", o, err)
	}
}

// TestRendezvous checks the address at which ranks meet. It is on the loopback interface if the whole gang is on this
// machine, whatever its name is. Otherwise it is on the network.
func TestRendezvous(t *testing.T) {
	for name, c := range map[string]struct {
		local  bool
		hosts  int
		want   string
		spread bool
	}{
		"this machine": {true, 1, "127.0.0.1", false}, "simulated hosts": {true, 2, "127.0.0.1", false},
		"another": {false, 1, "10.0.0.1", false}, "others": {false, 2, "10.0.0.1", true},
	} {
		a := attempt(job.MPINone)
		a.Placement.Hosts = a.Placement.Hosts[:c.hosts]
		nodes, at, _, err := launch(t, &fakeHosts{local: c.local}).gather(t.Context(), &a)
		if err != nil || at.Address != c.want || at.Port != 1000 || nodes[0].spread != c.spread {
			t.Errorf("%s: %+v, %v; want %s", name, at, err, c.want)
		}
	}
}

// TestCancelBeforeTheGang checks that the reason for a cancellation is returned, whatever the calls return.
func TestCancelBeforeTheGang(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := launch(t, &fakeHosts{}).Run(ctx, attempt(job.MPINone), func(job.Event) {}); !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
}

// TestAbandonSilent checks that gangrun gives up a silent host if the user is in a hurry, and reports the ranks that
// may be left there. Otherwise it waits.
func TestAbandonSilent(t *testing.T) {
	for name, c := range map[string]struct {
		hurried, silence time.Duration // how long ago that was
		want             bool
	}{
		"nobody is in a hurry":   {0, time.Hour, false},
		"just now":               {hurryLimit / 2, time.Hour, false},
		"silent":                 {2 * hurryLimit, agents.AbandonAfter + time.Second, true},
		"not silent long enough": {2 * hurryLimit, agents.AbandonAfter / 2, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			heard := time.Now().Add(-c.silence)
			var told []job.Event
			n := &node{agent: &agents.Agent{Host: "h2", Link: agents.Link{Heard: func() time.Time { return heard }}}, ranks: []job.Rank{{Rank: 1, Host: "h2"}}}
			g := &running{nodes: []*node{n}, tally: tally{seen: map[int]bool{}, listening: 1}, phase: lifecycle.Ending, end: end{cancelled: time.Now()}, wiring: newWiring(job.MPINone, false, nil),
				emitter: newEmitter(func(e job.Event) { told = append(told, e) }), reports: make(chan report, 2),
				drop: func(*agents.Agent) error { return errors.New("h2 may still have ranks until noon") }}
			if c.hurried > 0 {
				g.end.hurried = time.Now().Add(-c.hurried)
			}
			g.abandonSilent()
			g.abandonSilent()
			if c.want {
				g.take(<-g.reports)
			}
			g.emitter.close()
			if got := len(g.outcome.Unreaped) == 1 && g.tally.listening == 0; got != c.want {
				t.Errorf("%s: given up %t, want %t", name, got, c.want)
			}
			if got := slices.ContainsFunc(told, func(e job.Event) bool {
				return e.Kind == job.KindNote && e.Host == "h2" && e.Text == "h2 may still have ranks until noon"
			}); got != c.want {
				t.Errorf("%s: told %+v", name, told)
			}
		})
	}
}

// TestLogFile checks that lines of a rank's log name the log on the controller's machine.
func TestLogFile(t *testing.T) {
	for name, c := range map[string]struct {
		local bool
		line  job.Line
		want  string
	}{
		"standard output":    {line: job.Line{Source: job.SourceStdout, Rank: 3, File: "/tmp/x/logs/r/1/rank-0003.out"}, want: "/run/attempts/1/rank-0003.out"},
		"standard error":     {line: job.Line{Source: job.SourceStderr, Rank: 3, File: "/tmp/x/logs/r/1/rank-0003.err"}, want: "/run/attempts/1/rank-0003.err"},
		"of this machine":    {local: true, line: job.Line{Source: job.SourceStderr, Rank: 3, File: "/run/attempts/1/rank-0003.err"}, want: "/run/attempts/1/rank-0003.err"},
		"the kernel's":       {line: job.Line{Source: job.SourceKernel, Rank: -1, File: "/dev/kmsg"}, want: "/dev/kmsg"},
		"mpirun's":           {line: job.Line{Source: job.SourceStderr, Rank: -1, File: "/tmp/x/logs/r/1/mpirun.log"}, want: "/run/attempts/1/mpirun.log"},
		"the agent's own":    {line: job.Line{Source: job.SourceAgent, Rank: 3, File: "/tmp/x/logs/r/1/rank-0003.err"}, want: "/tmp/x/logs/r/1/rank-0003.err"},
		"a rank's, mpirun's": {line: job.Line{Source: job.SourceStderr, Rank: 1, File: "/tmp/x/logs/r/1/mpirun.log"}, want: "/run/attempts/1/mpirun.log"},
		"no log's":           {line: job.Line{Source: job.SourceStderr, Rank: -1}},
	} {
		g := &running{attempt: job.Attempt{Run: "r", Number: 1, LogDir: "/run/attempts/1"}}
		if got := g.logFile(&node{agent: &agents.Agent{Dir: "/tmp/x", Link: agents.Link{Local: c.local}}}, c.line); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
