package lease

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/noskip"
)

// helperEnv makes the test binary a helper: it holds JSON of an order.
const helperEnv = "GANGRUN_LEASE_TEST_HELPER"

func TestMain(m *testing.M) {
	if text := os.Getenv(helperEnv); text != "" {
		os.Exit(help(text))
	}
	goleak.VerifyTestMain(m)
}

// order is what a helper process does.
type order struct {
	Dir, Host string
	Umask     *int
	// Request is held until the helper's stdin ends, or it is killed. Wait makes a
	// ticket and only waits.
	Request Request
	Wait    bool
	// Gang, where it is not nil, is what the process does instead.
	Gang *simulated
}

func help(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Println("error", err)
		return 2
	}
	if o.Umask != nil {
		syscall.Umask(*o.Umask)
	}
	err := func() error {
		if o.Gang != nil {
			return o.Gang.run(context.Background(), o.Dir)
		}
		s, err := Open(o.Dir, o.Host)
		if err != nil {
			return err
		}
		turn := s.Turn()
		defer turn.Close()
		held, waiting, err := turn.Try(context.Background(), o.Request)
		if err != nil {
			return err
		}
		if held == nil {
			text, _ := json.Marshal(waiting)
			fmt.Printf("waiting %s\n", text)
			if o.Wait {
				io.Copy(io.Discard, os.Stdin)
			}
			return nil
		}
		if err := turn.Close(); err != nil {
			return err
		}
		fmt.Println("held")
		io.Copy(io.Discard, os.Stdin)
		return held.Release()
	}()
	if err != nil {
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	return 0
}

// helper is a process of a helper.
type helper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// start starts a helper of a user; uid 0 is the test's own.
func start(t testing.TB, uid int, o order) *helper {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	// Another user cannot reach the binary by its name, but every process its own.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &helper{cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
	t.Cleanup(h.kill)
	return h
}

// line returns the helper's next line.
func (h *helper) line(t testing.TB) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the helper said %q and then %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (h *helper) want(t testing.TB, want string) {
	t.Helper()
	if got := h.line(t); !strings.HasPrefix(got, want) {
		t.Fatalf("the helper says %q, want %q", got, want)
	}
}

func (h *helper) kill() {
	if h.cmd.ProcessState == nil {
		h.cmd.Process.Kill()
		h.cmd.Wait()
	}
}

// end lets the helper give back what it holds and waits for its end.
func (h *helper) end(t testing.TB) {
	t.Helper()
	h.stdin.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("the helper ended with %v", err)
	}
}

// needRoot skips where the test cannot act as several users.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		noskip.Skip(t, "only root can act as two users")
	}
}

// Users that tests act as; neither needs an account.
const (
	nobody = 65534
	other  = 54321
)

// directory returns a fit directory that other users reach too.
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

// turn returns a turn that ends with the test.
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

// req is a request of a run that is age seconds older than epoch.
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

// states returns the state of each GPU of a host that has a file.
func states(t testing.TB, dir, host string) map[string]State {
	t.Helper()
	found := map[string]State{}
	for _, l := range list(t, dir) {
		if l.Host == host {
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
	if got := states(t, dir, ""); got["GPU0"] == StateHeld {
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

func TestPretendedHostsAreApartAndNamesMayBeAny(t *testing.T) {
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

func TestOldestTicketFirst(t *testing.T) {
	s := open(t, directory(t), "")
	devices := gpus(4)
	hog := take(t, s, req("hog", 100, devices, 1, "GPU0"))
	big, small := turnOf(t, s), turnOf(t, s)
	refused(t, big, req("big", 10, devices, 4, devices...))
	w := refused(t, small, req("small", 5, devices, 1, "GPU1"))
	if len(w.Ahead) != 1 || w.Ahead[0].Ticket.Run != "big" || !slices.Equal(w.Blocking, []string{"big"}) || len(w.Spare) != 0 {
		t.Errorf("small waits for %+v", w)
	}
	// The holder has told no end: it holds for Horizon at the least.
	trial := req("trial", 4, devices, 1, "GPU1")
	trial.Limit = Horizon / 2
	if err := take(t, s, trial).Release(); err != nil {
		t.Fatal(err)
	}
	if err := hog.Release(); err != nil {
		t.Fatal(err)
	}
	if w := refused(t, turnOf(t, s), trial); !slices.Equal(w.Blocking, []string{"big"}) {
		t.Errorf("a trial went ahead of a gang that can start: %+v", w)
	}
	held, _, err := big.Try(t.Context(), req("big", 10, devices, 4, devices...))
	if err != nil || held == nil {
		t.Fatalf("big: %v", err)
	}
	defer held.Release()
	if err := big.Close(); err != nil {
		t.Fatal(err)
	}
	if w := refused(t, small, req("small", 5, devices, 1, "GPU1")); len(w.Ahead) != 0 {
		t.Errorf("ahead of small are %+v", w.Ahead)
	}
}

func TestTicketsOfTheDeadAreVoid(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "h")
	devices := gpus(2)
	take(t, s, req("hog", 100, devices, 1, "GPU0"))
	waits := start(t, 0, order{Dir: dir, Host: "h", Wait: true, Request: req("waits", 9, devices, 2, devices...)})
	waits.want(t, "waiting")
	turn := turnOf(t, s)
	refused(t, turn, req("next", 5, devices, 1, "GPU1"))
	waits.kill()
	held, w, err := turn.Try(t.Context(), req("next", 5, devices, 1, "GPU1"))
	if err != nil || held == nil {
		t.Fatalf("a dead gang is waited for: %+v, %v", w, err)
	}
	held.Release()
	// The next waiter takes over the void file.
	refused(t, turnOf(t, s), req("third", 1, devices, 2))
	files, err := filepath.Glob(dir + "/*.ticket.*")
	if err != nil || len(files) != 2 {
		t.Errorf("tickets are %v", files)
	}
}

func TestKilledHolderLeavesNothing(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	devices := gpus(3)
	h := start(t, 0, order{Dir: dir, Request: req("dies", 9, devices, 2, "GPU0", "GPU2")})
	h.want(t, "held")
	turn := turnOf(t, s)
	refused(t, turn, req("next", 5, devices, 3, devices...))
	h.kill()
	if got := states(t, dir, ""); got["GPU0"] != StateDead || got["GPU2"] != StateDead {
		t.Errorf("after the kill: %v", got)
	}
	next := take(t, s, req("next", 5, devices, 2, "GPU0", "GPU1"))
	gone, err := Release(t.Context(), dir)
	if err != nil || len(gone) != 1 || len(gone[0].Leases) != 1 || gone[0].Leases[0].Device != "GPU2" || gone[0].Leases[0].Owner.Run != "dies" {
		t.Errorf("released %+v, %v", gone, err)
	}
	if got := states(t, dir, ""); got["GPU0"] != StateHeld || got["GPU2"] != StateFree {
		t.Errorf("after the release of the dead: %v", got)
	}
	if next.Err() != nil {
		t.Error(next.Err())
	}
}

func TestChildrenDoNotInheritLeases(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	held := take(t, s, req("parent", 9, gpus(1), 1, "GPU0"))
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	take(t, s, req("next", 5, gpus(1), 1, "GPU0"))
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", child.Process.Pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("the child's files: %v, %v", fds, err)
	}
	for _, fd := range fds {
		if target, _ := os.Readlink(fd); strings.HasPrefix(target, dir) {
			t.Errorf("the child has %s", target)
		}
	}
}

func TestLossIsNoticed(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.Rename(path+".new", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			s := open(t, dir, "")
			s.pulse = time.Millisecond
			held := take(t, s, req("r", 9, gpus(2), 2, gpus(2)...))
			select {
			case <-held.Done():
				t.Fatal("lost at once")
			default:
			}
			path := s.path(kindGPU, "GPU1")
			if err := os.WriteFile(path+".new", nil, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			<-held.Done()
			if err := held.Err(); err == nil || !strings.Contains(err.Error(), `"GPU1"`) {
				t.Errorf("the loss is told as %v", err)
			}
		})
	}
	held := take(t, open(t, directory(t), ""), req("r", 9, gpus(1), 1, "GPU0"))
	held.Release()
	<-held.Done()
	if err := held.Err(); err != nil {
		t.Errorf("a lease that was released is %v", err)
	}
}

func TestWaitWakesForReleaseAndDeath(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	s.repoll = time.Hour // what wakes must be the event
	turn := turnOf(t, s)
	for name, end := range map[string]func(*helper){
		"release": func(h *helper) { h.end(t) },
		"death":   func(h *helper) { h.kill() },
	} {
		h := start(t, 0, order{Dir: dir, Request: req(name, 9, gpus(1), 1, "GPU0")})
		h.want(t, "held")
		// What the helper's ticket did is old news.
		drained, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		for turn.Wait(drained) == nil {
		}
		cancel()
		refused(t, turn, req("waits", 5, gpus(1), 1, "GPU0"))
		woken, err := make(chan error), error(nil)
		go func() { woken <- turn.Wait(t.Context()) }()
		end(h)
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
		// The kernel tells a moment before the lock is gone.
		for held := (*Held)(nil); held == nil; {
			if held, _, err = turn.Try(t.Context(), req("waits", 5, gpus(1), 1, "GPU0")); err != nil {
				t.Fatal(err)
			}
			if held != nil {
				held.Release()
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := turn.Wait(ctx); err == nil {
		t.Error("Wait outlives its context")
	}
}

func TestStuckDeciderIsNamed(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	f, err := lock(s.path(kindOrder, ""), os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer f.drop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, _, err := turnOf(t, s).Try(ctx, req("r", 1, gpus(1), 1, "GPU0")); err == nil {
		t.Error("no error while another process decides")
	}
}
