package meeting

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/agents/agentstest"
)

// bed has agents that return made-up measurements.
type bed struct {
	local func(host string) bool
	// value returns the result of the nth measurement of a speed; n begins at 0.
	value func(s job.Speed, nth int) float64
	// stuck is the host that never answers a request to measure itself.
	stuck string
	burns string // the host whose agent fails

	mu    sync.Mutex
	times map[string]int
	busy  map[string]bool // the hosts that are measuring a link
	asked map[string][]*wire.MeasureRequest
	links []string
	wrong []string
}

type agent struct {
	wire.UnimplementedAgentServer
	*bed
	name string
}

func (b *bed) Dial(_ context.Context, host string) (agents.Link, error) {
	conn, _, end := agentstest.Serve(agent{bed: b, name: host})
	return agents.Link{Conn: conn, Local: b.local != nil && b.local(host), End: end}, nil
}

func (agent) Hello(context.Context, *wire.HelloRequest) (*wire.HelloReply, error) {
	return &wire.HelloReply{Cores: 1}, nil
}

func (agent) Clock(context.Context, *wire.ClockRequest) (*wire.ClockReply, error) {
	return &wire.ClockReply{Clock: time.Now().UnixNano()}, nil
}

// measured encodes the values of the speeds.
func (b *bed) measured(speeds []job.Speed) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, s := range speeds {
		key := fmt.Sprint(s.Host, s.Kind, s.Of)
		speeds[i].Value = b.value(s, b.times[key])
		b.times[key]++
	}
	data, err := json.Marshal(speeds)
	if err != nil {
		panic(err)
	}
	return data
}

func (a agent) Measure(ctx context.Context, r *wire.MeasureRequest) (*wire.MeasureReply, error) {
	a.mu.Lock()
	a.asked[a.name] = append(a.asked[a.name], r)
	a.mu.Unlock()
	if a.name == a.stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if a.name == a.burns {
		return nil, status.Error(codes.Internal, "the host burns")
	}
	var ask job.Measure
	if err := json.Unmarshal(r.Measure, &ask); err != nil {
		return nil, err
	}
	var speeds []job.Speed
	for _, k := range ask.Kinds {
		if !k.OfLink() {
			speeds = append(speeds, job.Speed{Host: a.name, Kind: k, Of: "part"})
		}
	}
	return &wire.MeasureReply{Speeds: a.measured(speeds)}, nil
}

func (a agent) Meet(stream wire.Agent_MeetServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.Send(&wire.MeetReply{Port: 1000}); err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		ends := []string{a.name, r.Link.Host}
		a.mu.Lock()
		a.links = append(a.links, strings.Join(ends, "-"))
		for _, h := range ends {
			if a.busy[h] {
				a.wrong = append(a.wrong, h)
			}
			a.busy[h] = true
		}
		a.mu.Unlock()
		data := a.measured([]job.Speed{{Host: a.name, Kind: job.SpeedLink, Of: r.Link.Host}, {Host: r.Link.Host, Kind: job.SpeedLink, Of: a.name}})
		a.mu.Lock()
		for _, h := range ends {
			a.busy[h] = false
		}
		a.mu.Unlock()
		if err := stream.Send(&wire.MeetReply{Speeds: data}); err != nil {
			return err
		}
	}
}

// measure calls Measure for n hosts with one GPU each.
func (b *bed) measure(t *testing.T, n int, kinds ...job.SpeedKind) ([]job.Speed, error) {
	t.Helper()
	b.times, b.busy, b.asked, b.links = map[string]int{}, map[string]bool{}, map[string][]*wire.MeasureRequest{}, nil
	pool := agents.New(agents.Options{Dialer: b, HostTimeout: time.Minute, Hurry: make(chan struct{})})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
	var hosts []job.Host
	var connected []*agents.Agent
	for i := range n {
		hosts = append(hosts, job.Host{Name: fmt.Sprint("h", i+1), Address: "10.0.0.1", Devices: []job.Device{{}}})
		a, err := pool.Get(t.Context(), hosts[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		connected = append(connected, a)
	}
	hosts[0].Devices = nil
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return Measure(ctx, connected, hosts, job.Measure{Kinds: kinds, LogDir: "/logs"})
}

func TestMeasure(t *testing.T) {
	b := &bed{value: func(s job.Speed, nth int) float64 {
		switch {
		case s.Kind == job.SpeedLink && (s.Host == "h3" || s.Of == "h3"):
			return 1 // slow in each measurement
		case s.Kind == job.SpeedCPU && s.Host == "h2" && nth == 0:
			return 1 // slow in the first measurement only
		}
		return 100
	}}
	speeds, err := b.measure(t, 4, job.SpeedCPU, job.SpeedLog, job.SpeedMatmul, job.SpeedLink)
	if err != nil || len(b.wrong) > 0 {
		t.Fatalf("%v; busy hosts got another link: %q", err, b.wrong)
	}
	for _, s := range speeds {
		want := 100.0
		if s.Kind == job.SpeedLink && (s.Host == "h3" || s.Of == "h3") {
			want = 1
		}
		if s.Value != want || s.Error != "" {
			t.Errorf("got %+v, want %v", s, want)
		}
	}
	if len(speeds) != 4+4+3+12 { // h1 has no GPU
		t.Errorf("got %d speeds: %+v", len(speeds), speeds)
	}
	// Each link was measured once. The links of h3 were measured two more times.
	slices.Sort(b.links)
	if got := strings.Join(b.links, " "); got != "h1-h2 h1-h3 h1-h3 h1-h3 h1-h4 h2-h3 h2-h3 h2-h3 h2-h4 h3-h4 h3-h4 h3-h4" {
		t.Errorf("measured links %s", got)
	}
	for host, want := range map[string]int{"h1": 1, "h2": 3, "h3": 2, "h4": 2} {
		if len(b.asked[host]) != want || !b.asked[host][0].Spool {
			t.Errorf("%s was asked %v, want %d times", host, b.asked[host], want)
		}
	}
}

// TestMeasureOneMachine checks that simulated hosts are measured once, and that a failure is reported for the host.
func TestMeasureOneMachine(t *testing.T) {
	b := &bed{local: func(string) bool { return true }, value: func(job.Speed, int) float64 { return 1 }}
	speeds, err := b.measure(t, 3, job.SpeedCPU, job.SpeedLink)
	if err != nil || len(speeds) != 1 || speeds[0].Host != "h1" || len(b.asked["h1"]) != 1 || b.asked["h1"][0].Spool || len(b.links) > 0 {
		t.Errorf("got %+v, %v; asked %v", speeds, err, b.asked)
	}
	b = &bed{burns: "h2", value: func(job.Speed, int) float64 { return 1 }}
	if _, err := b.measure(t, 3, job.SpeedCPU); err == nil || !strings.Contains(err.Error(), "measure host h2: ") || !strings.Contains(err.Error(), "the host burns") {
		t.Errorf("got %v", err)
	}
}

// TestMeasureLate checks that a host that does not answer in time gets a speed with an error. The speeds of the other
// hosts must be complete.
func TestMeasureLate(t *testing.T) {
	b := &bed{stuck: "h2", value: func(job.Speed, int) float64 { return 1 }}
	b.times, b.busy, b.asked = map[string]int{}, map[string]bool{}, map[string][]*wire.MeasureRequest{}
	pool := agents.New(agents.Options{Dialer: b, HostTimeout: time.Minute, Hurry: make(chan struct{})})
	defer pool.Close()
	m := measuring{ask: job.Measure{Kinds: []job.SpeedKind{job.SpeedCPU}}}
	for _, name := range []string{"h1", "h2"} {
		a, err := pool.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		m.agents, m.hosts = append(m.agents, a), append(m.hosts, job.Host{Name: name})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	b.value = func(job.Speed, int) float64 { // h1 has answered by then
		cancel(errors.New("not measured within 20s"))
		return 1
	}
	if err := m.all(ctx); err == nil {
		t.Error("the limit has no error")
	}
	slices.SortFunc(m.speeds, func(a, b job.Speed) int { return strings.Compare(a.Host, b.Host) })
	if n := len(m.speeds); n == 0 || m.speeds[n-1].Host != "h2" || m.speeds[n-1].Error != "not measured within 20s" {
		t.Errorf("got %+v", m.speeds)
	}
}

// TestRounds checks that every host has at most one partner in each round, and that no two hosts are partners twice.
func TestRounds(t *testing.T) {
	for n := 1; n <= 40; n++ {
		all := rounds(n)
		met := map[[2]int]bool{}
		for _, round := range all {
			busy := map[int]bool{}
			for _, pair := range round {
				if busy[pair[0]] || busy[pair[1]] || met[pair] || pair[0] >= pair[1] || pair[0] < 0 || pair[1] >= n {
					t.Fatalf("of %d hosts, %v in %v", n, pair, all)
				}
				busy[pair[0]], busy[pair[1]], met[pair] = true, true, true
			}
			if len(round) != n/2 {
				t.Errorf("of %d hosts, %d pairs measure at a time", n, len(round))
			}
		}
		if len(all) > mostRounds {
			t.Errorf("of %d hosts, %d rounds", n, len(all))
		}
		if n <= mostRounds && len(met) != n*(n-1)/2 {
			t.Errorf("of %d hosts, %d pairs are measured", n, len(met))
		}
	}
}
