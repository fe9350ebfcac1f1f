package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/lifecycle"
)

// talkers are agents with one rank each, which has printed something and ends at once.
type talkers struct {
	fakeHosts
	code   int                                                 // the exit code of every rank
	output func(host string, to wire.Agent_OutputServer) error // implements Output
	// trouble is why the agents cannot be reached; nil if they can be reached.
	trouble error
	// rest hands out what the agents have left.
	rest func(agents.RestRequest) error

	asking sync.Mutex
	asked  map[string]*wire.OutputRequest // the requests for output by host; nil if the test does not need them
}

// talker is the agent of one host of talkers.
type talker struct {
	fakeHost
	of *talkers
}

func (t *talkers) Dial(_ context.Context, host string) (agents.Link, error) {
	link, err := dialFake(talker{fakeHost{fakeHosts: &t.fakeHosts, name: host}, t}, false)
	link.Trouble = func() error { return t.trouble }
	if t.rest != nil {
		link.Rest = func(_ context.Context, want agents.RestRequest) error { return t.rest(want) }
	}
	return link, err
}

func (talker) Hello(context.Context, *wire.HelloRequest) (*wire.HelloReply, error) {
	return &wire.HelloReply{Cores: 1, Dir: []byte("/tmp/agent")}, nil
}

func (talker) Port(context.Context, *wire.PortRequest) (*wire.PortReply, error) {
	return &wire.PortReply{Port: 1000}, nil
}

func (t talker) Gang(stream wire.Agent_GangServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	e := job.Exit{Rank: int(t.name[1] - '1'), Host: t.name, Status: job.Exited, Code: t.of.code, Time: time.Now()}
	event, err := json.Marshal(job.Event{Kind: job.KindExit, Exit: &e})
	if err != nil {
		return err
	}
	return stream.Send(&wire.GangReply{Events: [][]byte{event}, Done: &wire.Done{}})
}

func (t talker) Output(r *wire.OutputRequest, to wire.Agent_OutputServer) error {
	t.of.asking.Lock()
	if t.of.asked != nil && len(r.Ranks) > 0 {
		t.of.asked[t.name] = r
	}
	t.of.asking.Unlock()
	return t.of.output(t.name, to)
}

// onH2 returns an implementation of Output that calls f on the host h2. On other hosts, the rank prints a line.
func onH2(f func(to wire.Agent_OutputServer) error) func(host string, to wire.Agent_OutputServer) error {
	return func(host string, to wire.Agent_OutputServer) error {
		if host == "h2" {
			return f(to)
		}
		return say(host, to, "hello\n", 2)
	}
}

// broken is the error of a broken connection.
var broken = status.Error(codes.Unavailable, "the line broke")

// say sends output of the rank on a host, and the ends of that many of its streams.
func say(host string, to wire.Agent_OutputServer, text string, ends int) error {
	rank := int32(host[1] - '1')
	err := to.Send(&wire.OutputReply{Rank: rank, Data: []byte(text)})
	for i := range ends {
		err = errors.Join(err, to.Send(&wire.OutputReply{Rank: rank, Stderr: i > 0, End: true}))
	}
	return err
}

// TestCollect checks that output that does not arrive completely is reported, and that such an attempt has not
// succeeded.
func TestCollect(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		output func(host string, to wire.Agent_OutputServer) error
		hurry  bool
		why    error  // why the hosts cannot be reached
		note   string // the note about h2
		fault  string // the fault of rank 1
		after  bool   // rank 1 counts as ended by gangrun
	}{
		"all of it": {output: func(host string, to wire.Agent_OutputServer) error { return say(host, to, "hello\n", 2) }},
		"one stream without an end": {
			output: onH2(func(to wire.Agent_OutputServer) error { return say("h2", to, "hello\n", 1) }),
			note:   "output from h2 is missing: only 6 bytes of rank 1 arrived: the agent there has no more of it; the rest is lost, since the agent deletes its logs when it ends",
			fault:  "its output did not all arrive from h2: the agent there has no more of it",
		},
		"the host is lost": {
			output: onH2(func(to wire.Agent_OutputServer) error { return errors.Join(say("h2", to, "hello\n", 0), broken) }),
			note:   "output from h2 is missing: only 6 bytes of rank 1 arrived: ",
			fault:  "its output did not all arrive from h2: ",
		},
		"ranks that had failed": {
			code:   3,
			output: onH2(func(wire.Agent_OutputServer) error { return broken }),
			note:   "output from h2 is missing: only 0 bytes of rank 1 arrived: the line broke; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1, if it is still there",
		},
		"the host was started anew": {
			code: 3, why: fmt.Errorf("%w, and so on", agents.ErrRestarted),
			output: onH2(func(wire.Agent_OutputServer) error { return broken }),
			note:   "output from h2 is missing: only 0 bytes of rank 1 arrived: the host was started anew, and so on; the rest may be lost, since h2 was started anew; what is left of it is in /tmp/agent/logs/r/1 there",
		},
		"the host was started anew, and has been given up already": {
			code: 3, why: fmt.Errorf("%w, and so on", agents.ErrRestarted),
			output: onH2(func(wire.Agent_OutputServer) error {
				return status.Error(codes.Canceled, "grpc: the client connection is closing")
			}),
			note: "output from h2 is missing: only 0 bytes of rank 1 arrived: the host was started anew, and so on; the rest may be lost, since h2 was started anew; what is left of it is in /tmp/agent/logs/r/1 there",
		},
		"nobody waits": {
			hurry: true,
			output: onH2(func(to wire.Agent_OutputServer) error {
				err := say("h2", to, "hello\n", 0)
				<-to.Context().Done()
				return err
			}),
			note:  "output from h2 is missing: only 6 bytes of rank 1 arrived: it was not waited for; the rest is lost, since the agent deletes its logs when it ends",
			fault: "its output did not all arrive from h2: it was not waited for", after: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := fourHosts()[:2]
				l := New(Options{Dialer: &talkers{code: c.code, output: c.output, trouble: c.why}, Hosts: hosts, HostTimeout: time.Minute})
				defer func() {
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}()
				a := job.Attempt{Run: "r", Number: 1, Command: []string{"true"}, LogDir: t.TempDir(), MPI: job.MPINone,
					Placement: job.Placement{Hosts: hosts, Ranks: []job.Rank{{Rank: 0, Host: "h1"}, {Rank: 1, Host: "h2"}}}}
				var mu sync.Mutex
				var notes []string
				exits, ended := 0, make(chan struct{})
				if c.hurry {
					go func() {
						<-ended
						synctest.Wait() // the output has arrived by then
						l.Hurry()
					}()
				}
				o, err := l.Run(t.Context(), a, func(e job.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Kind == job.KindExit {
						if exits++; exits == 2 {
							close(ended)
						}
					}
					if e.Kind == job.KindNote && e.Host != "" {
						notes = append(notes, e.Host+" "+e.Text)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				told := strings.Join(notes, "\n")
				if c.note == "" && told != "" || !strings.HasPrefix(told, "h2 "+c.note) && c.note != "" || len(notes) > 1 {
					t.Errorf("told %q, want of h2 %q", told, c.note)
				}
				for _, e := range o.Exits {
					want := ""
					if e.Rank == 1 {
						want = c.fault
					}
					if (e.Fault == "") != (want == "") || !strings.HasPrefix(e.Fault, want) || e.Stopped != (c.after && e.Rank == 1) {
						t.Errorf("%s (stopped: %t), want the fault %q", e, e.Stopped, want)
					}
				}
				if good := c.fault == "" && c.code == 0; o.Good(2) != good {
					t.Errorf("the gang ended well: %t, want %t", o.Good(2), good)
				}
			})
		})
	}
}

// TestLostAfterCancel checks that a host that was silent before the run was cancelled, and is lost after that, is not
// a failure that calls for a retry.
func TestLostAfterCancel(t *testing.T) {
	for name, c := range map[string]struct {
		cancelled bool
		want      bool
	}{"cancelled": {true, true}, "ended for a rank's failure": {false, false}} {
		now := time.Now()
		n := &node{agent: &agents.Agent{Host: "h2", Link: agents.Link{Heard: func() time.Time { return now.Add(-2 * time.Second) }}}, ranks: []job.Rank{{Rank: 1, Host: "h2"}}}
		g := &running{nodes: []*node{n}, tally: tally{seen: map[int]bool{}}, phase: lifecycle.Ending, end: end{ordered: now}, wiring: newWiring(job.MPINone, false, nil),
			emitter: newEmitter(func(job.Event) {}), reports: make(chan report, 2), drop: func(*agents.Agent) error { return nil }}
		if c.cancelled {
			g.end.cancelled = now
		}
		g.lose(n, errors.New("no contact with it"))
		g.take(<-g.reports)
		g.emitter.close()
		if e := g.outcome.Exits[0]; e.Status != job.Lost || e.Stopped != c.want {
			t.Errorf("%s: %+v, want stopped %t", name, e, c.want)
		}
	}
}

// TestSuspectWhileCollecting checks that a silent host is reported as suspect while its output is still being fetched,
// and not after that.
func TestSuspectWhileCollecting(t *testing.T) {
	heard := time.Now().Add(-2 * agents.SuspectAfter)
	fetched := make(chan struct{})
	var told []job.Event
	n := &node{agent: &agents.Agent{Host: "h2", Link: agents.Link{Heard: func() time.Time { return heard }}}, done: true, fetched: fetched}
	g := &running{nodes: []*node{n}, emitter: newEmitter(func(e job.Event) { told = append(told, e) })}
	g.suspect()
	g.suspect()
	heard = time.Now().Add(time.Hour)
	g.suspect()
	heard = time.Now().Add(-2 * agents.SuspectAfter)
	close(fetched)
	g.suspect()
	g.emitter.close()
	if len(told) != 2 || told[0].Kind != job.KindSuspect || told[0].Since == nil || time.Since(*told[0].Since) < agents.SuspectAfter || told[1].Kind != job.KindHeard || told[1].Since != nil {
		t.Errorf("told %+v", told)
	}
}
