package gpuqueue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/lease"
	"github.com/gangrun/gangrun/topology/lease/leasetest"
)

// pairedHost returns a host of four GPUs that are connected in two pairs.
func pairedHost(name string) job.Host {
	h := leasetest.Host(name, 4)
	for i := range 4 {
		row := make([]job.Link, 4)
		for j := range row {
			row[j] = job.LinkSYS
			if i/2 == j/2 {
				row[j] = "NV4"
			}
		}
		h.Links = append(h.Links, row)
	}
	return h
}

func onRack(h job.Host, rack string) job.Host { h.Rack = rack; return h }
func withSlots(h job.Host, n int) job.Host    { h.Hard, h.Slots = true, n; return h }

func TestGPUClaims(t *testing.T) {
	for name, c := range map[string]struct {
		want  topology.Want
		hosts []job.Host
		// For each host, claim has the GPUs that the ticket names, the number that it claims, and the smallest number
		// that the gang needs.
		claim string
	}{
		"each host alone":            {topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityHost}, []job.Host{leasetest.Host("a", 4), leasetest.Host("b", 2), leasetest.Host("c", 1)}, "4/2/2 2/2/2 1/0/0"},
		"any GPUs of one island":     {topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityIsland}, []job.Host{leasetest.Host("a", 4)}, "4/2/2"},
		"not any GPUs of one island": {topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityIsland}, []job.Host{pairedHost("a"), leasetest.Host("b", 2)}, "4/4/2 2/2/2"},
		"one GPU is an island":       {topology.Want{Ranks: 1, GPUs: 1, Locality: job.LocalityIsland}, []job.Host{pairedHost("a")}, "4/1/1"},
		"a rack":                     {topology.Want{Ranks: 5, GPUs: 1, Locality: job.LocalityRack}, []job.Host{onRack(leasetest.Host("a", 4), "r"), onRack(leasetest.Host("b", 4), "r"), onRack(leasetest.Host("c", 4), "s")}, "4/4/1 4/4/1 4/0/0"},
		"all together":               {topology.Want{Ranks: 3, GPUs: 1, Locality: job.LocalityAny}, []job.Host{leasetest.Host("a", 4), leasetest.Host("b", 2)}, "4/3/1 2/2/0"},
		"whole ranks":                {topology.Want{Ranks: 2, GPUs: 2, Locality: job.LocalityAny}, []job.Host{leasetest.Host("a", 3), leasetest.Host("b", 3)}, "3/2/2 3/2/2"},
		"slots":                      {topology.Want{Ranks: 3, GPUs: 1, Locality: job.LocalityAny}, []job.Host{withSlots(leasetest.Host("a", 4), 1), leasetest.Host("b", 4)}, "4/1/0 4/3/2"},
		"without what others use":    {topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityHost}, []job.Host{leasetest.Used(leasetest.Host("a", 3), 0), leasetest.Used(leasetest.Host("b", 2), 1)}, "2/2/2 1/0/0"},
		"where others use the best":  {topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityIsland}, []job.Host{leasetest.Used(pairedHost("a"), 0, 2), leasetest.Used(pairedHost("b"), 0)}, "2/0/0 3/3/2"},
		"others are everywhere":      {topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityHost}, []job.Host{leasetest.Used(leasetest.Host("a", 2), 0)}, "2/2/2"},
	} {
		var got []string
		for _, claim := range claimsFor(c.want, c.hosts, job.Excluded{}) {
			got = append(got, fmt.Sprintf("%d/%d/%d", len(claim.devices), claim.count, claim.least))
		}
		if text := strings.Join(got, " "); text != c.claim {
			t.Errorf("%s: %s, want %s", name, text, c.claim)
		}
	}
}

// TestSmallJobsDoNotStarveABigGang checks that a big gang gets the first host that drains, even if it is not the best
// host for the gang. Small jobs that came later must get no GPUs there meanwhile.
func TestSmallJobsDoNotStarveABigGang(t *testing.T) {
	dir := leasetest.Dir(t)
	two := []string{"GPU0", "GPU1"}
	leasetest.Small(t, dir, "h1", two, "GPU0") // holds the GPU for ever
	first, second := leasetest.Small(t, dir, "h2", two, "GPU0"), leasetest.Small(t, dir, "h2", two, "GPU1")
	waits := make(chan string, 100)
	p := &Gang{
		NewTurn: ownTurns(t),
		Run:     "big", Hosts: []job.Host{leasetest.Host("h1", 2), leasetest.Host("h2", 2), leasetest.Host("h3", 1)}, Simulated: true, Patience: "strict",
		Want: topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityHost}, Emit: func(e job.Event) { waits <- e.Text },
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	placed := make(chan string, 1)
	go func() {
		l, err := p.Place(ctx)
		if err != nil {
			placed <- err.Error()
			return
		}
		defer l.Release()
		var where []string
		for _, r := range l.Placement.Ranks {
			where = append(where, r.Host+" "+strings.Join(r.Devices, ","))
		}
		placed <- strings.Join(where, "; ")
	}()
	next := func(what string, from <-chan string) string {
		t.Helper()
		select {
		case text := <-from:
			return text
		case <-time.After(time.Minute):
			t.Fatalf("waited in vain for %s", what)
			return ""
		}
	}
	if text := next("what is waited for", waits); !strings.Contains(text, "waiting for 2 GPUs") {
		t.Errorf("it tells %q", text)
	}
	if leasetest.Small(t, dir, "h3", []string{"GPU0"}, "GPU0") == nil {
		t.Error("a small job waits on a host that the gang cannot use")
	}
	if held := leasetest.Small(t, dir, "h1", two, "GPU1"); held != nil {
		t.Error("a small job goes ahead on h1")
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if held := leasetest.Small(t, dir, "h2", two, "GPU0"); held != nil {
		t.Error("a small job goes ahead on h2")
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
	if where := next("a place", placed); where != "h2 GPU0; h2 GPU1" {
		t.Errorf("placed on %s", where)
	}
}

// ownTurn is a Turn of this process.
type ownTurn struct{ *lease.Turn }

func (o ownTurn) Try(ctx context.Context, r lease.Request) (Grant, *lease.Waiting, error) {
	held, waiting, err := o.Turn.Try(ctx, r)
	if held == nil {
		return nil, waiting, err
	}
	return held, waiting, err
}

func ownTurns(t *testing.T) func(host, space string) Turn {
	return func(_, name string) Turn {
		space, err := lease.Open(os.Getenv(lease.Env), name)
		if err != nil {
			t.Fatal(err)
		}
		return ownTurn{space.Turn()}
	}
}

// waitOf returns a wait of a placer, with a clock that the test controls.
func waitOf(t *testing.T, p *Gang) (*wait, *time.Time) {
	t.Helper()
	p.NewTurn = ownTurns(t)
	w := newWait(p)
	t.Cleanup(w.close)
	now := w.since
	w.now = func() time.Time { return now }
	return w, &now
}

// heldOn returns the state of a host on which some GPUs are held.
func heldOn(host string, since time.Time, spare []string, devices ...string) *lease.Waiting {
	w := &lease.Waiting{Host: host, Spare: spare}
	for _, d := range devices {
		w.Leases = append(w.Leases, lease.Lease{Device: d, State: lease.StateHeld, Owner: &lease.Owner{Run: "r1", User: "ada", PID: 12, Since: since}})
	}
	return w
}

// TestWaitRelaxesWhenItSays checks the times at which a gang accepts wider levels. They are sums of the patience for
// the levels. The gang must ask again at the next of these times. When it takes free GPUs of a wider level, it must
// say so.
func TestWaitRelaxesWhenItSays(t *testing.T) {
	leasetest.Dir(t)
	var notes []string
	hosts := []job.Host{onRack(leasetest.Host("h1", 4), "r"), onRack(leasetest.Host("h2", 4), "s")}
	p := &Gang{NewTurn: ownTurns(t), Run: "big", Hosts: hosts, Simulated: true, Patience: "island=10s,host=20s,rack=40s",
		Want: topology.Want{Ranks: 4, GPUs: 1, Locality: job.LocalityAny}, Emit: func(e job.Event) { notes = append(notes, e.Text) }}
	w, now := waitOf(t, p)
	states := []*lease.Waiting{heldOn("h1", *now, []string{"GPU2", "GPU3"}, "GPU0", "GPU1"), heldOn("h2", *now, []string{"GPU2", "GPU3"}, "GPU0", "GPU1")}
	for _, c := range []struct {
		after, again time.Duration
		took         bool
		note         string
	}{
		{0, 10 * time.Second, false, "on one island: GPU0 GPU1 of h1 are held by run r1"},
		{9 * time.Second, 10 * time.Second, false, ""},
		{10 * time.Second, 30 * time.Second, false, "on one host: "},
		{30 * time.Second, 70 * time.Second, false, "in one rack: "},
		{70 * time.Second, 0, true, ""},
	} {
		*now, notes = w.since.Add(c.after), nil
		requests, again, err := w.plan(states)
		if err != nil {
			t.Fatal(err)
		}
		if want := w.since.Add(c.again); c.again > 0 && !again.Equal(want) || c.again == 0 && !again.IsZero() {
			t.Errorf("after %s it asks again at %s, want %s", c.after, again, want)
		}
		if took := len(requests[0].Take) > 0; took != c.took {
			t.Errorf("after %s it takes %v", c.after, requests[0].Take)
		}
		text := strings.Join(notes, "\n")
		if c.note == "" && text != "" || !strings.Contains(text, c.note) {
			t.Errorf("after %s it tells %q, want %q", c.after, text, c.note)
		}
		if left := fmt.Sprintf("4 GPUs are free at level any, which it takes in %s at the latest", 70*time.Second-c.after); c.note != "" && !strings.Contains(text, left) {
			t.Errorf("after %s it tells %q, want %q", c.after, text, left)
		}
	}
	p.Patience, notes, w.notes = "island=10s,host=strict", nil, map[noteKind]note{}
	*now = w.since.Add(time.Hour)
	if _, again, err := w.plan(states); err != nil || !again.IsZero() || len(notes) != 1 || strings.Contains(notes[0], "takes in") {
		t.Errorf("a gang that never relaxes asks again at %s, %v, and tells %q", again, err, notes)
	}
}

// TestWaitDoesNotFlood checks that not every change of the holders is reported.
func TestWaitDoesNotFlood(t *testing.T) {
	leasetest.Dir(t)
	var notes []job.Event
	p := &Gang{NewTurn: ownTurns(t), Run: "big", Hosts: []job.Host{leasetest.Host("h1", 2)}, Simulated: true, Patience: "strict",
		Want: topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityHost}, Emit: func(e job.Event) { notes = append(notes, e) }}
	w, now := waitOf(t, p)
	for i := range 60 {
		*now = w.since.Add(time.Duration(i) * time.Second)
		state := heldOn("h1", *now, nil, "GPU0") // a new holder every second
		if i%2 == 1 {
			state = &lease.Waiting{Host: "h1"} // the GPUs are idle, but kept for older gangs
		}
		if _, _, err := w.plan([]*lease.Waiting{state}); err != nil {
			t.Fatal(err)
		}
	}
	var held, kept int
	for _, n := range notes {
		if n.Kind != job.KindNote || n.State != job.StateWaiting {
			t.Errorf("the note is %+v", n)
		}
		if strings.Contains(n.Text, "held by") {
			held++
		} else {
			kept++
		}
	}
	if held != 2 || kept != 1 {
		t.Errorf("in a minute it tells %d times of holders and %d times of gangs that wait: %+v", held, kept, notes)
	}
}

// TestLeaseWinsOverProcess checks that a process on a leased GPU is attributed to the holder of the lease. When the
// lease ends, the host must be looked at again at once.
func TestLeaseWinsOverProcess(t *testing.T) {
	leasetest.Dir(t)
	var notes []string
	looks := 0
	p := &Gang{NewTurn: ownTurns(t), Run: "big", Hosts: []job.Host{leasetest.Used(leasetest.Host("h1", 2), 0, 1)}, Simulated: true, Patience: "strict",
		Want: topology.Want{Ranks: 2, GPUs: 1, Locality: job.LocalityHost}, Emit: func(e job.Event) { notes = append(notes, e.Text) },
		Look: func() []job.Host { looks++; return []job.Host{leasetest.Host("h1", 2)} }}
	w, now := waitOf(t, p)
	both := []string{"GPU0", "GPU1"}
	held := heldOn("h1", now.Add(-50*time.Hour), nil, both...)
	for range 3 {
		if _, _, err := w.plan([]*lease.Waiting{held}); err != nil {
			t.Fatal(err)
		}
	}
	if since := now.Add(-50 * time.Hour).Local().Format(time.DateTime); len(notes) != 1 || !strings.Contains(notes[0], "GPU0 GPU1 of h1 are held by run r1 of ada (pid 12) since "+since) || looks != 0 {
		t.Errorf("%d looks, and it tells %q", looks, notes)
	}
	requests, _, err := w.plan([]*lease.Waiting{{Host: "h1", Spare: both}})
	if err != nil || looks != 1 || !slices.Equal(requests[0].Take, both) {
		t.Errorf("after the release: %d looks, %+v, %v", looks, requests, err)
	}
	// A GPU that is in use without a lease is used by others. The host is looked at again at the usual time.
	p.Hosts = []job.Host{leasetest.Used(leasetest.Host("h1", 2), 0)}
	requests, _, err = w.plan([]*lease.Waiting{{Host: "h1", Spare: both}})
	if err != nil || looks != 1 || len(requests[0].Take) != 0 || !strings.Contains(notes[len(notes)-1], "is used by pid 7") {
		t.Errorf("used by others: %d looks, %+v, %v, %q", looks, requests, err, notes)
	}
}

// TestWarningsOfLeasesAreToldOnce checks that a run reports each warning about leases once.
func TestWarningsOfLeasesAreToldOnce(t *testing.T) {
	dir := leasetest.Dir(t)
	for name, text := range map[string]string{"gangrun.h1.gpu.GPU1": "torn", "gangrun.h1.gpu.%1B%5BmGPU": ""} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "gangrun.h1.gpu.GPU2"), 0o777); err != nil {
		t.Fatal(err)
	}
	var notes []string
	p := &Gang{NewTurn: ownTurns(t), Run: "r", Hosts: []job.Host{leasetest.Host("h1", 3)}, Simulated: true, Patience: "strict",
		Want: topology.Want{Ranks: 1, GPUs: 1}, Emit: func(e job.Event) { notes = append(notes, e.Text) }}
	for range 2 {
		notes = nil
		l, err := p.Place(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Release()
		if len(notes) != 3 || !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "truncated record") }) ||
			!slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "not a regular file") }) {
			t.Errorf("it tells %q", notes)
		}
		path := filepath.Join(dir, "gangrun.h1.gpu.GPU1") // GPU0 is held
		if err := os.WriteFile(path, []byte("torn"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w, _ := waitOf(t, p)
	notes = nil
	state := &lease.Waiting{Warnings: []string{"one", "two"}, Leases: []lease.Lease{{State: lease.StateHeld, Warning: "just given back"}}}
	for range 3 {
		w.warn([]*lease.Waiting{state, nil}[:1])
	}
	if len(notes) != 2 {
		t.Errorf("it tells %q", notes)
	}
}
