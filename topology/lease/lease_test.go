package lease

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests act as these users, which need no accounts.
const (
	nobody = 65534
	other  = 54321
)

// directory returns a directory that is fit for leases and that other users can reach.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gangrun-lease-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, dir, host string) *Space {
	t.Helper()
	s, err := Open(dir, host)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// turnOf returns a Turn that is closed when the test ends.
func turnOf(t testing.TB, s *Space) *Turn {
	t.Helper()
	turn := s.Turn()
	t.Cleanup(func() {
		if err := turn.Close(); err != nil {
			t.Error(err)
		}
	})
	return turn
}

// gpus returns the names of n GPUs.
func gpus(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("GPU%d", i)
	}
	return names
}

var epoch = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// req returns a request of a run that is age seconds older than epoch.
func req(run string, age int, devices []string, count int, take ...string) Request {
	return Request{
		Ticket: Ticket{Run: run, Since: epoch.Add(time.Duration(-age) * time.Second), Devices: devices, Count: count, Least: count},
		Take:   take, User: "ada", Command: "python train.py", Ranks: []int{0, 1},
	}
}

func take(t testing.TB, s *Space, r Request) *Held {
	t.Helper()
	turn := s.Turn()
	defer turn.Close()
	held, waiting, err := turn.Try(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if held == nil {
		t.Fatalf("run %s has to wait: %+v", r.Run, waiting)
	}
	t.Cleanup(func() {
		if err := held.Release(); err != nil {
			t.Error(err)
		}
	})
	return held
}

func refused(t testing.TB, turn *Turn, r Request) *Waiting {
	t.Helper()
	held, waiting, err := turn.Try(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if held != nil {
		held.Release()
		t.Fatalf("run %s got %v", r.Run, held.Devices())
	}
	return waiting
}

func list(t testing.TB, dir string) []Listing {
	t.Helper()
	all, err := List(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// states returns the state of each GPU of this machine that has a file.
func states(t testing.TB, dir string) map[string]State {
	t.Helper()
	found := map[string]State{}
	for _, l := range list(t, dir) {
		if l.Host == "" {
			for _, lease := range l.Leases {
				found[lease.Device] = lease.State
			}
		}
	}
	return found
}

func TestTryTakesAllOrNone(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	devices := gpus(4)
	first := take(t, s, req("first", 9, devices, 2, "GPU1", "GPU2"))
	if got := first.Devices(); !slices.Equal(got, []string{"GPU1", "GPU2"}) {
		t.Errorf("got %v", got)
	}

	turn := turnOf(t, s)
	w := refused(t, turn, req("second", 8, devices, 2, "GPU0", "GPU1"))
	if !slices.Equal(w.Spare, []string{"GPU0", "GPU3"}) {
		t.Errorf("spare are %v", w.Spare)
	}
	for i, want := range []State{StateFree, StateHeld, StateHeld, StateFree} {
		if l := w.Leases[i]; l.Device != devices[i] || l.State != want || (l.Owner != nil) != (want == StateHeld) {
			t.Errorf("lease %d is %+v, want %s", i, l, want)
		}
	}
	o := w.Leases[1].Owner
	if o.Run != "first" || o.User != "ada" || o.PID != os.Getpid() || o.UID != os.Geteuid() || o.Command != "python train.py" || !slices.Equal(o.Ranks, []int{0, 1}) || o.Host == "" || o.Start == 0 || o.Since.IsZero() {
		t.Errorf("the owner is %+v", o)
	}
	if got := states(t, dir); got["GPU0"] == StateHeld {
		t.Error("a refused request left GPU0 held")
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if held, w, err := turn.Try(t.Context(), req("second", 8, devices, 2, "GPU0", "GPU1")); err != nil || held == nil {
		t.Fatalf("after the release: %+v, %v", w, err)
	} else if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	s := open(t, directory(t), "")
	good := req("r", 1, gpus(2), 1, "GPU0")
	for name, spoil := range map[string]func(*Request){
		"must name its run":        func(r *Request) { r.Run = "" },
		"since when":               func(r *Request) { r.Since = time.Time{} },
		"never have them":          func(r *Request) { r.Count = 3 },
		"needs at least 2":         func(r *Request) { r.Least = 2 },
		"needs at least -1":        func(r *Request) { r.Least = -1 },
		"names 257 GPUs":           func(r *Request) { r.Devices = gpus(257) },
		"of 257 bytes":             func(r *Request) { r.Devices = []string{strings.Repeat("x", 257), "GPU0"} },
		"cannot be printed":        func(r *Request) { r.Devices = []string{"GPU\x1b[31m", "GPU0"} },
		"name \"r\\x00\"":          func(r *Request) { r.Run = "r\x00" },
		"negative":                 func(r *Request) { r.Limit = -1 },
		"without a UUID":           func(r *Request) { r.Devices = []string{"", "GPU0"} },
		"names GPU \"GPU0\" twice": func(r *Request) { r.Devices = []string{"GPU0", "GPU0"} },
		"has a ticket for 1":       func(r *Request) { r.Take = gpus(2) },
		"does not name":            func(r *Request) { r.Take = []string{"GPU9"} },
		"takes GPU \"GPU0\" twice": func(r *Request) { r.Count, r.Take = 2, []string{"GPU0", "GPU0"} },
	} {
		r := good
		spoil(&r)
		if _, _, err := turnOf(t, s).Try(t.Context(), r); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	turn := turnOf(t, s)
	refused(t, turn, req("r", 1, gpus(2), 1))
	for _, r := range []Request{req("q", 1, gpus(2), 1), req("r", 2, gpus(2), 1)} {
		if _, _, err := turn.Try(t.Context(), r); err == nil {
			t.Errorf("a ticket became %+v", r.Ticket)
		}
	}
	turn.Close()
	if _, _, err := turn.Try(t.Context(), req("r", 1, gpus(2), 1)); err == nil {
		t.Error("a closed turn tries")
	}
}

func TestSimulatedHostsAreApartAndNamesMayBeAny(t *testing.T) {
	dir := directory(t)
	long := strings.Repeat("node.é/", 25)
	for _, host := range []string{"", "h1", "h2", "../h", "@", "a.b", long} {
		device := "GPU.0/" + strings.Repeat("x", len(host))
		take(t, open(t, dir, host), req("r"+host, 1, []string{device}, 1, device))
		w := refused(t, turnOf(t, open(t, dir, host)), req("other", 0, []string{device}, 1, device))
		if l := w.Leases[0]; l.State != StateHeld || l.Owner == nil || l.Owner.Run != "r"+host || l.Device != device {
			t.Errorf("host %q: %+v", host, l)
		}
		if l := list(t, dir); !slices.ContainsFunc(l, func(l Listing) bool {
			return (l.Host == host || host == long) && len(l.Leases) == 1 && l.Leases[0].Device == device && l.Leases[0].State == StateHeld
		}) {
			t.Errorf("host %q is not in %+v", host, l)
		}
	}
}
