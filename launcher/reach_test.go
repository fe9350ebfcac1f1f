package launcher

import (
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/agents/agentstest"

	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// fakeHosts are agents that only pretend to meet.
type fakeHosts struct {
	wire.UnimplementedAgentServer
	local    bool
	ahead    time.Duration     // how far the clock of h2 is ahead
	sick     string            // the host whose second reply does not come
	dead     map[string]string // by host, the call during which its agent dies
	stuck    map[string]string // by host, the call that it does not answer
	full     bool              // whether all hosts have no free port
	machines map[string]string // the machine of each host
	// leftovers has the replies of each host to Leftovers. The last one is repeated.
	leftovers map[string][]*wire.LeftoversReply

	mu    sync.Mutex
	ended map[string]bool
	asked []job.Survey
	dials map[string]int
}

// fakeHost is the agent of one of fakeHosts.
type fakeHost struct {
	*fakeHosts
	name   string
	hangUp func()
}

// hangs waits for the end of ctx if the host does not answer the call.
func (h fakeHost) hangs(ctx context.Context, call string) error {
	if h.stuck[h.name] != call {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// dies ends the agent if it is to die during the call.
func (h fakeHost) dies(call string) error {
	if h.dead[h.name] == call {
		h.hangUp()
		return io.ErrUnexpectedEOF // the caller does not get this error
	}
	return nil
}

func (f *fakeHosts) Dial(_ context.Context, host string) (agents.Link, error) {
	f.mu.Lock()
	if f.dials == nil {
		f.dials = map[string]int{}
	}
	f.dials[host]++
	f.mu.Unlock()
	return dialFake(fakeHost{fakeHosts: f, name: host}, f.local)
}

// dialFake returns a link to an agent.
func dialFake(agent wire.AgentServer, local bool) (agents.Link, error) {
	var cut func()
	if f, ok := agent.(fakeHost); ok {
		f.hangUp = func() { cut() }
		agent = f
	}
	conn, hangUp, end := agentstest.Serve(agent)
	cut = hangUp
	return agents.Link{Conn: conn, Local: local, End: end}, nil
}

func (h fakeHost) Hello(context.Context, *wire.HelloRequest) (*wire.HelloReply, error) {
	if err := h.dies("Hello"); err != nil {
		return nil, err
	}
	return &wire.HelloReply{Cores: 1, Machine: h.machines[h.name]}, nil
}

func (h fakeHost) Clock(context.Context, *wire.ClockRequest) (*wire.ClockReply, error) {
	now := time.Now()
	if h.name == "h2" {
		now = now.Add(h.ahead)
	}
	return &wire.ClockReply{Clock: now.UnixNano()}, nil
}

func (h fakeHost) Survey(ctx context.Context, r *wire.SurveyRequest) (*wire.SurveyReply, error) {
	if err := h.hangs(ctx, "Survey"); err != nil {
		return nil, err
	}
	var ask job.Survey
	if err := json.Unmarshal(r.Survey, &ask); err != nil {
		return nil, err
	}
	if err := h.dies("Survey"); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.asked = append(h.asked, ask)
	h.mu.Unlock()
	facts := job.Facts{Host: h.name, Check: &job.DirectoryFact{}}
	if h.name == "h3" { // h3 cannot use the directory
		facts.Check.Kind, facts.Check.Error = job.ErrorReadOnly, "read-only file system"
	}
	data, err := json.Marshal(facts)
	return &wire.SurveyReply{Facts: data}, err
}

func (h fakeHost) Library(ctx context.Context, _ *wire.LibraryRequest) (*wire.LibraryReply, error) {
	if err := h.hangs(ctx, "Library"); err != nil {
		return nil, err
	}
	return &wire.LibraryReply{}, h.dies("Library")
}

func (h fakeHost) Port(context.Context, *wire.PortRequest) (*wire.PortReply, error) {
	if h.full {
		return nil, status.Error(codes.Aborted, "listen tcp :0: too many open files")
	}
	return &wire.PortReply{Port: 1000}, h.dies("Port")
}

func (h fakeHost) Meet(stream wire.Agent_MeetServer) error {
	if err := h.dies("Meet"); err != nil {
		return err
	}
	ask, err := stream.Recv()
	if err != nil {
		return err
	}
	if len(ask.Secret) < 16 || ask.Address != "10.0.0."+h.name[1:] || (string(ask.Dir) == "/c") == (h.name == "h3") {
		return fmt.Errorf("asked for %v", ask)
	}
	reply := &wire.MeetReply{Port: 1000, Wrote: len(ask.Dir) > 0}
	if h.name == "h4" {
		reply.Port, reply.Error = 0, "too many open files"
	}
	if err := stream.Send(reply); err != nil {
		return err
	}
	ask, err = stream.Recv()
	if err != nil {
		return err
	}
	if h.name == h.sick {
		return fmt.Errorf("the host burns")
	}
	var facts []job.ReachFact
	shared := job.SharedFact{Sees: []string{h.name}}
	for _, p := range ask.Peers {
		facts = append(facts, job.ReachFact{To: p.Host, Address: p.Address, Error: p.Error})
		if p.Wrote {
			shared.Sees = append(shared.Sees, p.Host)
		}
	}
	reply = &wire.MeetReply{}
	if reply.Reach, err = json.Marshal(facts); err == nil && h.name != "h3" {
		reply.Shared, err = json.Marshal(shared)
	}
	if err != nil {
		return err
	}
	if err := stream.Send(reply); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != io.EOF {
		return fmt.Errorf("the end is %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended[h.name] = true
	return nil
}

func fourHosts() (hosts []job.Host) {
	for i := 1; i <= 4; i++ {
		hosts = append(hosts, job.Host{Name: fmt.Sprintf("h%d", i), Address: fmt.Sprintf("10.0.0.%d", i)})
	}
	return hosts
}

func survey(t *testing.T, f *fakeHosts, hosts []job.Host) ([]job.Facts, error) {
	t.Helper()
	f.ended = map[string]bool{}
	l := New(Options{Dialer: f, Hosts: hosts, HostTimeout: time.Minute})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Survey(t.Context(), hosts, job.Survey{Command: []string{"true"}, CheckpointDir: "/c", Compile: true})
}

// TestSurveyOfSeveralMachines checks that hosts on several machines meet. Their facts must have the results, and the
// differences of their clocks.
func TestSurveyOfSeveralMachines(t *testing.T) {
	f := &fakeHosts{ahead: -2 * time.Minute}
	facts, err := survey(t, f, fourHosts())
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]string{"h1": "h2 h3 h4", "h2": "h3 h4 h1", "h3": "h4 h1 h2", "h4": "h1 h2 h3"}
	sees := map[string]string{"h1": "h1 h2 h4", "h2": "h2 h4 h1", "h3": "", "h4": "h4 h1 h2"}
	for _, got := range facts {
		var to []string
		for _, r := range got.Reach {
			to = append(to, r.To)
			if (r.Error != "") != (r.To == "h4") {
				t.Errorf("%s: %+v", got.Host, r)
			}
		}
		if strings.Join(to, " ") != others[got.Host] {
			t.Errorf("%s was to reach %q, want %q", got.Host, to, others[got.Host])
		}
		var seen []string
		if got.Shared != nil {
			seen = got.Shared.Sees
		}
		if strings.Join(seen, " ") != sees[got.Host] {
			t.Errorf("%s sees %q, want %q", got.Host, seen, sees[got.Host])
		}
		want := time.Duration(0)
		if got.Host == "h2" {
			want = f.ahead
		}
		if got.SkewWithin <= 0 || (got.Skew-want).Abs() > got.SkewWithin {
			t.Errorf("%s is %s ahead, give or take %s; want %s", got.Host, got.Skew, got.SkewWithin, want)
		}
		if !f.ended[got.Host] {
			t.Errorf("the meeting was not ended on %s", got.Host)
		}
	}
	compile := 0
	for _, ask := range f.asked {
		if ask.Compile {
			compile++
		}
		if !ask.Versions {
			t.Error("a host was not asked for versions")
		}
	}
	if compile != 1 {
		t.Errorf("%d hosts were to compile, want 1", compile)
	}
}

// TestSurveyOfOneMachine checks that hosts on one machine, and single hosts, do not meet.
func TestSurveyOfOneMachine(t *testing.T) {
	for name, c := range map[string]struct {
		local bool
		hosts int
	}{"simulated hosts": {true, 4}, "one host": {false, 1}} {
		f := &fakeHosts{local: c.local}
		facts, err := survey(t, f, fourHosts()[:c.hosts])
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range facts {
			if got.Reach != nil || got.Shared != nil || got.SkewWithin != 0 || len(f.ended) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if slices.ContainsFunc(f.asked, func(s job.Survey) bool { return s.Versions }) {
			t.Errorf("%s: a host was asked for versions", name)
		}
	}
}

// TestMeetLost checks that the error names a host that is lost during the meeting, and that the meeting of the other
// hosts is ended.
func TestMeetLost(t *testing.T) {
	_, err := survey(t, &fakeHosts{sick: "h3"}, fourHosts())
	if err == nil || !strings.Contains(err.Error(), "have host h3 meet the others: ") || !strings.Contains(err.Error(), "the host burns") {
		t.Errorf("got %v", err)
	}
}
