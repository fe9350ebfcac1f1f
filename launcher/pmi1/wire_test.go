package pmi1

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// limit is how long a test waits for anything. A test that waits longer fails.
const limit = 2 * time.Minute

// barriers gets the barriers that a server reports.
type barriers chan string

func (b barriers) enter(group string, _ []Pair) { b <- group }

// next waits for the next barrier.
func (b barriers) next(t *testing.T) {
	t.Helper()
	select {
	case <-b:
	case <-time.After(limit):
		t.Fatalf("no barrier was told of within %s", limit)
	}
}

// client is the rank's end of a connection.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// dial lets the server serve a rank over a pipe, and returns the end of the rank.
func dial(t *testing.T, s *Server, rank int) *client {
	t.Helper()
	theirs, ours := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(rank, ours)
	}()
	t.Cleanup(func() {
		theirs.Close()
		<-served
	})
	return newClient(t, theirs)
}

func newClient(t *testing.T, conn net.Conn) *client {
	conn.SetDeadline(time.Now().Add(limit)) // if the connection hangs, the test fails
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		c.t.Fatalf("sending %.80q: %v", line, err)
	}
}

func (c *client) want(answer string) {
	c.t.Helper()
	got, err := c.in.ReadString('\n')
	if got != answer+"\n" {
		c.t.Fatalf("got %q (%v), want %q", got, err, answer)
	}
}

func (c *client) ask(line, answer string) {
	c.t.Helper()
	c.send(line)
	c.want(answer)
}

// closed checks that the server has closed the connection.
func (c *client) closed() {
	c.t.Helper()
	if got, err := c.in.ReadString('\n'); err != io.EOF && !strings.Contains(fmt.Sprint(err), "reset") {
		c.t.Fatalf("got %q (%v), want the end", got, err)
	}
}

const initLine, initAnswer = "cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2"

func (c *client) init() { c.t.Helper(); c.ask(initLine, initAnswer) }

func newServer(t *testing.T, config Config) *Server {
	s := NewServer(config)
	t.Cleanup(s.Close)
	return s
}

func TestWire(t *testing.T) {
	long := strings.Repeat("v", 900)
	for _, dialogue := range [][]string{
		{"cmd=get_maxes", "cmd=maxes rc=-1 msg=before_init_or_after_finalize"},
		{"cmd=put kvsname=k key=a value=b", "cmd=put_result rc=-1 msg=before_init_or_after_finalize"},
		{"cmd=init pmi_version=2 pmi_subversion=0", "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=2"},
		{initLine, initAnswer,
			"cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024",
			"cmd=get_appnum", "cmd=appnum rc=0 appnum=5",
			"cmd=get_universe_size", "cmd=universe_size rc=0 size=1",
			"cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=k",
			"cmd=get kvsname=k key=PMI_process_mapping", "cmd=get_result rc=0 value=(vector,(0,1,1))",
			"cmd=get kvsname=k key=a", "cmd=get_result rc=-1 msg=key_not_found value=unknown",
			"cmd=get kvsname=x key=a", "cmd=get_result rc=-1 msg=kvs_not_found value=unknown",
			"cmd=put kvsname=x key=a value=b", "cmd=put_result rc=-1 msg=kvs_not_found",
			"cmd=put kvsname=k key=a value=b\\ c=d", "cmd=put_result rc=0",
			"cmd=get kvsname=k key=a", "cmd=get_result rc=0 value=b\\ c=d",
			"cmd=put kvsname=k key=a value=" + long, "cmd=put_result rc=0",
			"cmd=get kvsname=k key=a", "cmd=get_result rc=0 value=" + long,
			"cmd=put kvsname=k key=" + long[:64] + " value=x", "cmd=put_result rc=0",
			"cmd=put kvsname=k key=" + long[:65] + " value=x", "cmd=put_result rc=-1 msg=bad_key",
			"cmd=put kvsname=k value=x", "cmd=put_result rc=-1 msg=bad_key",
			"cmd=put kvsname=k key=u value=\xff", "cmd=put_result rc=-1 msg=bad_value",
			"cmd=put kvsname=k key=PMI_x value=x", "cmd=put_result rc=-1 msg=key_is_reserved",
			"cmd=barrier_in", "cmd=barrier_out rc=0",
			"cmd=barrier_in group=WORLD:7", "cmd=barrier_out rc=0 tag=7",
			"cmd=barrier_in group=NODE:0", "cmd=barrier_out rc=0 tag=0",
			"cmd=barrier_in group=0", "cmd=barrier_out rc=0",
			"cmd=barrier_in group=1", "cmd=barrier_out rc=-1 msg=bad_group",
			"cmd=publish_name service=s port=p$1", "cmd=publish_result info=ok rc=0 msg=success",
			"cmd=lookup_name service=s", "cmd=lookup_result info=ok rc=0 port=p$1",
			"cmd=unpublish_name service=s", "cmd=unpublish_result info=ok rc=0 msg=success",
			"cmd=lookup_name service=s", "cmd=lookup_result info=fail rc=-1 msg=service_not_found",
			"cmd=fly.high now", "cmd=fly_result rc=-1 msg=unknown_command",
			"mcmd=spawn\ntotspawns=2\nspawnssofar=1\nendcmd\nmcmd=spawn\ntotspawns=2\nspawnssofar=2\narg1=a b\nendcmd",
			"cmd=spawn_result rc=-1 msg=cannot_spawn_ranks",
			"cmd=finalize", "cmd=finalize_ack rc=0",
			"cmd=barrier_in", "cmd=barrier_out rc=-1 msg=before_init_or_after_finalize",
			initLine, initAnswer},
		{initLine, initAnswer, "no command", "END"},
		{"cmd=init\x01", "END"},
		{"cmd=" + strings.Repeat("x", maxLine), "END"},
		{"cmd=x" + strings.Repeat(" a=b", maxFields+1), "END"},
	} {
		s := newServer(t, Config{Name: "k", Size: 1, Ranks: []int{0}, Mapping: Mapping([]int{0}), Appnum: func(int) int { return 5 }})
		c := dial(t, s, 0)
		for i := 0; i < len(dialogue); i += 2 {
			if dialogue[i+1] != "END" {
				c.ask(dialogue[i], dialogue[i+1])
				continue
			}
			io.WriteString(c.conn, dialogue[i]+"\n") // the server may not read all of it
			c.closed()
		}
	}
}

func TestStates(t *testing.T) {
	var mu sync.Mutex
	told := 0
	s := newServer(t, Config{Name: "k", Size: 2, Ranks: []int{0, 1}, Changed: func(int) { mu.Lock(); told++; mu.Unlock() }})
	c, d := dial(t, s, 0), dial(t, s, 1)
	check := func(want State) {
		t.Helper()
		if got := s.State(0); got != want {
			t.Fatalf("state is %+v, want %+v", got, want)
		}
	}
	check(State{Joined: job.JoinedSilent})
	c.init()
	d.init()
	check(State{Joined: job.JoinedInit})
	c.send("cmd=barrier_in")
	// When the server answers this, the rank has entered the barrier.
	c.ask("cmd=get kvsname=k key=a", "cmd=get_result rc=-1 msg=key_not_found value=unknown")
	check(State{Joined: job.JoinedInit, Waiting: true})
	d.send("cmd=barrier_in")
	c.want("cmd=barrier_out rc=0")
	d.want("cmd=barrier_out rc=0")
	check(State{Joined: job.JoinedInit, Passed: true})
	// When the server answers this, the ranks have been told the end of the barrier, which d has completed.
	d.ask("cmd=get kvsname=k key=a", "cmd=get_result rc=-1 msg=key_not_found value=unknown")
	c.send("cmd=abort exitcode=-256 message=all is lost")
	c.ask("cmd=get kvsname=k key=a", "cmd=get_result rc=-1 msg=key_not_found value=unknown")
	check(State{Joined: job.JoinedInit, Passed: true, Aborted: true, Code: -256, Message: "all is lost"})
	c.ask("cmd=finalize", "cmd=finalize_ack rc=0")
	check(State{Joined: job.JoinedFinalized, Passed: true, Aborted: true, Code: -256, Message: "all is lost", Finalized: true})
	mu.Lock()
	defer mu.Unlock()
	if told < 6 {
		t.Errorf("told of %d changes, want each of 6 or more", told)
	}
}

// TestPassed checks that a rank has passed a barrier only if all ranks of the gang, on all hosts, have entered it.
// Each program of a rank begins anew. A rank alone passes a barrier at once.
func TestPassed(t *testing.T) {
	s := newServer(t, Config{Name: "k", Size: 3, Ranks: []int{0, 1}})
	c, d := dial(t, s, 0), dial(t, s, 1)
	check := func(want bool) {
		t.Helper()
		if got := s.State(0).Passed; got != want {
			t.Fatalf("passed is %v, want %v", got, want)
		}
	}
	c.init()
	d.init()
	c.send("cmd=barrier_in group=NODE")
	d.send("cmd=barrier_in group=NODE")
	c.want("cmd=barrier_out rc=0")
	d.want("cmd=barrier_out rc=0")
	check(false)
	c.send("cmd=barrier_in")
	d.send("cmd=barrier_in")
	d.ask("cmd=get kvsname=k key=a", "cmd=get_result rc=-1 msg=key_not_found value=unknown")
	check(false)
	s.Release("", nil)
	c.want("cmd=barrier_out rc=0")
	check(true)
	c.ask("cmd=finalize", "cmd=finalize_ack rc=0")
	again := dial(t, s, 0)
	again.init()
	check(false)
	alone := newServer(t, Config{Name: "k", Size: 1, Ranks: []int{0}})
	dial(t, alone, 0).init()
	if !alone.State(0).Passed {
		t.Error("the only rank waits for others")
	}
}

// TestTwoHosts tests ranks 0 and 1 on one host and rank 2 on another host.
func TestTwoHosts(t *testing.T) {
	ranks := [][]int{{0, 1}, {2}}
	hub := NewHub(ranks)
	var mu sync.Mutex
	var servers []*Server
	for host, here := range ranks {
		servers = append(servers, newServer(t, Config{Name: "k", Size: 3, Ranks: here, Enter: func(group string, puts []Pair) {
			mu.Lock()
			all, done := hub.Enter(host, group, puts)
			mu.Unlock()
			if done {
				servers[0].Release(group, all)
				servers[1].Release(group, all)
			}
		}}))
	}
	a, b, c := dial(t, servers[0], 0), dial(t, servers[0], 1), dial(t, servers[1], 2)
	for program := range 2 {
		for _, one := range []*client{a, b, c} {
			one.init()
		}
		// On its own host, a put is visible at once. On other hosts, it is visible after the barrier.
		a.ask(fmt.Sprint("cmd=put kvsname=k key=a value=", program), "cmd=put_result rc=0")
		b.ask("cmd=get kvsname=k key=a", fmt.Sprint("cmd=get_result rc=0 value=", program))
		for range 3 {
			for _, one := range []*client{a, b, c} {
				one.send("cmd=barrier_in")
			}
			for _, one := range []*client{a, b, c} {
				one.want("cmd=barrier_out rc=0")
			}
		}
		c.ask("cmd=get kvsname=k key=a", fmt.Sprint("cmd=get_result rc=0 value=", program))
		// Two of three ranks meet. The order in which they are named does not matter.
		b.send("cmd=barrier_in group=1,2:3")
		c.send("cmd=barrier_in group=2,1:3")
		b.want("cmd=barrier_out rc=0 tag=3")
		c.want("cmd=barrier_out rc=0 tag=3")
		a.ask("cmd=barrier_in group=1,2:3", "cmd=barrier_out rc=-1 msg=not_in_group tag=3")
		for _, one := range []*client{a, b, c} {
			one.ask("cmd=finalize", "cmd=finalize_ack rc=0")
		}
	}
}

// TestLateRelease checks a rank that finalizes while it waits in a barrier, and begins anew. The late end of the
// barrier must not be sent to it.
func TestLateRelease(t *testing.T) {
	entered := make(barriers, 2)
	s := newServer(t, Config{Name: "k", Size: 2, Ranks: []int{0}, Enter: entered.enter})
	c := dial(t, s, 0)
	c.init()
	c.send("cmd=barrier_in")
	entered.next(t)
	c.ask("cmd=finalize", "cmd=finalize_ack rc=0")
	c.init()
	s.Release("", []Pair{{"a", "1"}})
	c.ask("cmd=get kvsname=k key=a", "cmd=get_result rc=0 value=1")
	c.send("cmd=barrier_in")
	entered.next(t)
	s.Release("", nil)
	c.want("cmd=barrier_out rc=0")
	if state := s.State(0); state.Waiting {
		t.Errorf("after the release the rank is %+v", state)
	}
}

// TestPart checks that a rank that was released from a barrier counts as present in that barrier, even after it has
// finalized. In later barriers, it must be waited for again.
func TestPart(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprint("elsewhere=", elsewhere), func(t *testing.T) {
			size, entered := 2, make(barriers, 2)
			if elsewhere {
				size = 3
			}
			s := newServer(t, Config{Name: "k", Size: size, Ranks: []int{0, 1}, Enter: entered.enter})
			release := func() {
				if elsewhere {
					entered.next(t)
					s.Release("", nil)
				}
			}
			a, b := dial(t, s, 0), dial(t, s, 1)
			a.init()
			b.init()
			if s.Part(0) || s.Part(2) {
				t.Error("let go who waits for nobody")
			}
			a.send("cmd=barrier_in")
			// Part returns true when the rank has entered the barrier.
			for deadline := time.Now().Add(limit); !s.Part(0); runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatalf("rank 0 has not come to the barrier within %s", limit)
				}
			}
			a.want("cmd=barrier_out rc=0")
			if s.Part(0) || s.State(0).Waiting {
				t.Error("let go twice")
			}
			a.ask("cmd=finalize", "cmd=finalize_ack rc=0")
			b.send("cmd=barrier_in")
			release()
			b.want("cmd=barrier_out rc=0")
			a.init()
			a.send("cmd=barrier_in")
			b.send("cmd=barrier_in")
			release()
			a.want("cmd=barrier_out rc=0")
			b.want("cmd=barrier_out rc=0")
		})
	}
}

// TestPartHeld releases one rank from a barrier for which only ranks on other hosts are missing. The end of the
// barrier must then be sent to the other ranks only.
func TestPartHeld(t *testing.T) {
	entered := make(barriers, 2)
	s := newServer(t, Config{Name: "k", Size: 3, Ranks: []int{0, 1}, Enter: entered.enter})
	a, b := dial(t, s, 0), dial(t, s, 1)
	for _, c := range []*client{a, b} {
		c.init()
		c.send("cmd=barrier_in")
	}
	entered.next(t)
	if !s.Part(1) {
		t.Error("not let go")
	}
	b.want("cmd=barrier_out rc=0")
	b.ask("cmd=finalize", "cmd=finalize_ack rc=0")
	s.Release("", nil)
	a.want("cmd=barrier_out rc=0")
	if len(entered) > 0 || s.Part(0) {
		t.Error("the barrier goes on")
	}
}

// TestSlowReader checks that other ranks go on if a rank never reads.
func TestSlowReader(t *testing.T) {
	s := newServer(t, Config{Name: "k", Size: 2, Ranks: []int{0, 1}})
	slow, quick := dial(t, s, 0), dial(t, s, 1)
	slow.init()
	quick.init()
	slow.send("cmd=barrier_in")
	quick.ask("cmd=barrier_in", "cmd=barrier_out rc=0")
	quick.ask("cmd=get_appnum", "cmd=appnum rc=0 appnum=0")
}

// TestLimits checks that the values that a rank can put are limited.
func TestLimits(t *testing.T) {
	st := newStore(true)
	value := strings.Repeat("v", 900)
	n := 0
	for st.put(0, fmt.Sprint("k", n), value) {
		n++
	}
	if n > maxBytes/900 || n < maxBytes/1000 {
		t.Errorf("a rank could put %d values", n)
	}
	if !st.put(1, "k0", value) || !st.put(0, "last", "small") {
		t.Error("what another rank took over still counts")
	}
	for range 10 {
		st.put(1, "k0", value)
	}
	if len(st.fresh) != n+1 {
		t.Errorf("%d keys are fresh, want %d", len(st.fresh), n+1)
	}
}

func TestListen(t *testing.T) {
	s := newServer(t, Config{Name: "k", Size: 2, Ranks: []int{0, 1}})
	address, err := s.Listen(func(conn *net.TCPConn, id int) (int, bool) { return id - 40, id == 41 || id == 99 })
	if err != nil {
		t.Fatal(err)
	}
	connect := func(first string) *client {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		c := newClient(t, conn)
		c.send(first)
		return c
	}
	for _, first := range []string{"cmd=initack pmiid=40", "cmd=initack pmiid=x", "cmd=init pmi_version=1", "GET / HTTP/1.1"} {
		connect(first).closed()
	}
	for range 2 { // the second program connects before the connection of the first one has ended
		c := connect("cmd=initack pmiid=41")
		for _, line := range []string{"cmd=initack rc=0", "cmd=set size=2", "cmd=set rank=1", "cmd=set debug=0"} {
			c.want(line)
		}
		c.init()
		c.ask("cmd=finalize", "cmd=finalize_ack rc=0")
	}
}
