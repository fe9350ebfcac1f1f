package testhosts

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The times for which reach waits for an answer, in seconds. brief is for a port that must be silent. patient is for a
// port that must answer, because the machine may be slow.
const (
	brief   = "0.5"
	patient = "60"
)

// knock returns a command that succeeds if port 22 of an address is open.
func knock(seconds, address string) []string {
	return []string{"timeout", seconds, "bash", "-c", "</dev/tcp/" + address + "/22"}
}

// reach returns what the controller finds at port 22 of an address: "open", "refused", "unreachable", or "silent" if
// there is no answer within the time.
func (b *Bed) reach(t *testing.T, seconds, address string) string {
	t.Helper()
	begun := time.Now()
	out, err := b.Controller().Exec(t.Context(), knock(seconds, address)...)
	switch {
	case err == nil:
		return "open"
	case seconds == brief && time.Since(begun) > time.Second && strings.Contains(out, "No route to host"):
		return "silent" // this machine stood still for so long that the kernel gave up
	case strings.Contains(out, "refused"):
		return "refused"
	case strings.Contains(out, "No route to host"):
		return "unreachable"
	case strings.Contains(err.Error(), "exit status 124"):
		return "silent"
	}
	t.Fatal(err)
	return ""
}

// finds fails the test if reach does not return want.
func (b *Bed) finds(t *testing.T, address, want string) {
	t.Helper()
	seconds := patient
	if want == "silent" {
		seconds = brief
	}
	if got := b.reach(t, seconds, address); got != want {
		t.Errorf("port 22 of %s is %s, want it %s", address, got, want)
	}
}

// carries fails the test if the network card of the host does not report the carrier want.
func carries(t *testing.T, h *Host, want string) {
	t.Helper()
	if got := on(t, h, "cat", "/sys/class/net/eth0/carrier"); got != want {
		t.Errorf("its network card sees the carrier %q, want %q", got, want)
	}
}

// session is an SSH session to a host that sends back every line.
type session struct {
	t     *testing.T
	stdin io.Writer
	lines chan string // is closed at the end of the session
}

func openSession(t *testing.T, b *Bed, h *Host) *session {
	t.Helper()
	cmd := b.Controller().Command(t.Context(), "ssh", "-o", "LogLevel=ERROR", h.Name(), "cat")
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	s := &session{t: t, stdin: stdin, lines: make(chan string, 10)}
	ended := make(chan error, 1)
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			s.lines <- lines.Text()
		}
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() { // t.Context has killed the process by then
		<-ended
	})
	s.tell("hello")
	s.hear("hello")
	return s
}

func (s *session) tell(line string) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.stdin, line)
	must(s.t, err)
}

// hear waits for a line. If want is "", it waits for the end of the session.
func (s *session) hear(want string) {
	s.t.Helper()
	select {
	case got := <-s.lines:
		if got != want {
			s.t.Fatalf("the session says %q, want %q", got, want)
		}
	case <-time.After(limit):
		s.t.Fatalf("the session does not say %q", want)
	}
}

// silent fails the test if a line has come, or if the session has ended.
func (s *session) silent() {
	s.t.Helper()
	select {
	case got, ok := <-s.lines:
		s.t.Fatalf("the session says %q (%t), want nothing", got, ok)
	default:
	}
}

func TestCutIsSilentAndMendHeals(t *testing.T) {
	b := Up(t, 2)
	h := b.Host(1)
	s := openSession(t, b, h)
	must(t, h.Cut())
	s.tell("through?")
	b.finds(t, "h1", "silent")
	if out, err := h.Exec(t.Context(), knock(brief, "h2")...); err == nil || strings.Contains(out, "refused") {
		t.Errorf("a host that is cut off reaches another: %v, %s", err, out)
	}
	carries(t, h, "1")
	b.finds(t, "h2", "open")
	s.silent()
	must(t, h.Restore())
	s.hear("through?")
}

func TestUnplug(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	s := openSession(t, b, h)
	must(t, h.Unplug())
	s.tell("through?")
	carries(t, h, "0")
	b.finds(t, "h1", "silent")
	s.silent()
	must(t, h.Plug())
	s.hear("through?")
}

func TestRate(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	must(t, h.Rate("20mbit"))
	// 2.5 MB are 20 Mbit. The first 64 KiB of a burst are not limited.
	const least = 900 * time.Millisecond
	for direction, script := range map[string]string{
		"from the host": "ssh h1 head -c 2500000 /dev/zero >/dev/null",
		"to the host":   "head -c 2500000 /dev/zero | ssh h1 'cat >/dev/null'",
	} {
		start := time.Now()
		_, err := b.Controller().Exec(t.Context(), "sh", "-c", script)
		must(t, err)
		if took := time.Since(start); took < least {
			t.Errorf("2.5 MB %s at 20 Mbit/s took %v, want at least %v", direction, took, least)
		}
	}
	must(t, h.Rate(""))
	must(t, h.Rate(""))
	if got := on(t, h, "tc", "qdisc", "show", "dev", "eth0"); strings.Contains(got, "tbf") {
		t.Errorf("there is still a limit: %s", got)
	}
}

// TestLoss sends datagrams to a port that no process uses. The kernel of the host counts those that arrive.
func TestLoss(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	arrived := func() int {
		t.Helper()
		out := on(t, h, "awk", `$1 == "Udp:" && $3 ~ /^[0-9]/ { print $3 }`, "/proc/net/snmp")
		n, err := strconv.Atoi(out)
		must(t, err)
		return n
	}
	const sent = 400
	for _, test := range []struct{ percent, least, most int }{
		{0, sent, sent},
		{50, sent / 4, sent * 3 / 4}, // the limits are ten standard deviations away
		{100, 0, 0},
		{0, sent, sent},
	} {
		must(t, h.Loss(test.percent))
		before := arrived()
		_, err := b.Controller().Exec(t.Context(), "bash", "-c",
			`for ((i = 0; i < $0; i++)); do echo >/dev/udp/10.77.0.1/9; done`, strconv.Itoa(sent))
		must(t, err)
		got := 0
		_ = eventually(func() (bool, error) { // the datagrams may arrive later
			got = arrived() - before
			return got >= test.least, nil
		})
		if got < test.least || got > test.most {
			t.Errorf("of %d datagrams, %d arrive at a loss of %d %%: want %d to %d", sent, got, test.percent, test.least, test.most)
		}
	}
}

func TestBlock(t *testing.T) {
	b := Up(t, 3)
	h := b.Host(1)
	must(t, h.Block(b.Host(2)))
	must(t, h.Loss(0)) // must not undo Block
	for _, test := range []struct {
		from *Host
		to   string
		open bool
	}{
		{h, "h2", false}, {b.Host(2), "h1", false},
		{h, "h3", true}, {b.Host(3), "h1", true}, {b.Host(2), "h3", true},
	} {
		seconds := brief
		if test.open {
			seconds = patient
		}
		_, err := test.from.Exec(t.Context(), knock(seconds, test.to)...)
		if (err == nil) != test.open {
			t.Errorf("from %s to %s: %v, want it open: %t", test.from.Name(), test.to, err, test.open)
		}
	}
	ssh(t, b, h, "true")
	must(t, h.Block())
	on(t, h, "bash", "-c", "</dev/tcp/h2/22")
}

func TestLineOutlivesPoweroff(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	must(t, h.Poweroff())
	must(t, h.Cut())
	must(t, h.Rate("10mbit"))
	must(t, h.Loss(100))
	must(t, h.Boot())
	b.finds(t, "h1", "silent")
	if got := on(t, h, "tc", "qdisc", "show", "dev", "eth0"); !strings.Contains(got, "rate 10Mbit") {
		t.Errorf("its rate is lost: %s", got)
	}
	must(t, h.Restore())
	b.finds(t, "h1", "silent")
	must(t, h.Loss(0))
	ssh(t, b, h, "true")
}

func TestAbsent(t *testing.T) {
	b := Up(t, 1)
	if got := b.reach(t, brief, b.Absent().String()); got != "silent" && got != "unreachable" {
		t.Errorf("an address that nobody has is %s", got)
	}
}

func TestSSHStopsAndStarts(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	s := openSession(t, b, h)
	must(t, h.StopSSH())
	s.hear("")
	b.finds(t, "h1", "refused")
	must(t, h.StartSSH())
	ssh(t, b, h, "true")
}
