package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/bridge"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/resumable"
	"github.com/gangrun/gangrun/launcher"
)

// Agents starts agents on other hosts, each with a connection that outlives what
// carries it.
type Agents struct {
	Dialer *Dialer
	// Program is what is put on a host that has it not.
	Program Program
	// Target is what a host is dialled as, [USER@]HOST[:PORT] or a name of
	// ssh_config.
	Target func(host string) string
	// OrphanGrace is how long an agent lives that hears nothing.
	OrphanGrace time.Duration
	// Note is told what a user should know; nil where nobody asks.
	Note func(host, text string)
	// Started is told of each agent that has been started, before Dial returns, so
	// that a later controller finds it again; nil where nobody asks.
	Started func(host string, at job.Agent)
	// Held are the agents that an earlier controller has started; Dial takes over
	// those that still live.
	Held map[string]job.Agent
}

// Times of a line that is broken or silent.
const (
	// retrySilent is after how much silence a second connection is tried beside the
	// one that may be dead.
	retrySilent = 2500 * time.Millisecond
	// retryFirst and retryMost bound the wait between two tries; it doubles.
	retryFirst, retryMost = 100 * time.Millisecond, time.Second
	// retryEvery is after how long another try is made beside one that has not ended,
	// retries how many there are at once, and retryLimit bounds each of them.
	retryEvery = 3 * time.Second
	retries    = 3
	retryLimit = 12 * time.Second
	// startLimit bounds the start of an agent, the arrival of the program included.
	startLimit = 2 * time.Minute
	// endSlack is how long an agent that has ended its ranks for want of a
	// controller may take for that.
	endSlack = 5 * time.Second
	// byeLimit is how long an agent may take to end that has been told to.
	byeLimit = 10 * time.Second
	// answerLimit is within which a host must answer that has closed its
	// connections, and answerEvery how often it is asked: its kernel refuses a
	// connection at once where only its sshd is gone.
	answerLimit, answerEvery = 500 * time.Millisecond, 100 * time.Millisecond
)

// Dial implements launcher.Dialer.
func (a *Agents) Dial(ctx context.Context, host string) (launcher.Link, error) {
	link, err := a.dial(ctx, host)
	if err != nil {
		err = &launcher.UnreachableError{Host: host, Err: err}
	}
	return link, err
}

func (a *Agents) dial(ctx context.Context, host string) (launcher.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := a.Dialer.Dial(ctx, a.Target(host))
	if err != nil {
		return launcher.Link{}, err
	}
	g := &agent{agents: a, host: host, stream: resumable.New(resumable.Options{ID: resumable.NewID()}), ended: make(chan struct{})}
	carrier, err := g.adopt(ctx, c)
	held := carrier != nil
	if carrier == nil && err == nil {
		carrier, err = g.start(ctx, c)
	}
	if err != nil {
		return launcher.Link{}, errors.Join(err, c.Close())
	}
	for _, note := range c.Notes() {
		g.note(note)
	}
	g.begun = time.Now() // its bridge has just been heard
	g.life, g.cancel = context.WithCancel(context.Background())
	go func() { // ends with the stream, or by end
		defer close(g.ended)
		g.keep(carrier)
	}()
	return launcher.Link{Conn: g.stream, Heard: g.heard, Trouble: g.trouble, Address: c.address().Addr(), Held: held, End: g.end}, nil
}

// Bring puts another program on a host and returns its path there.
func (a *Agents) Bring(ctx context.Context, host string, p Program) (path string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := a.Dialer.Dial(ctx, a.Target(host))
	if err != nil {
		return "", err
	}
	path, _, err = Install(ctx, c, p)
	return path, errors.Join(err, c.Close())
}

// agent is one host's, from this side.
type agent struct {
	agents *Agents
	host   string
	at     job.Agent
	stream *resumable.Conn
	begun  time.Time // of keep

	life   context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing is carried any more

	mu    sync.Mutex
	dead  bool  // the agent is known to be gone, with its processes
	wrong error // why it cannot be reached, where that is known

	// left is when the last carrier was given up: from then on the agent has heard
	// nothing, unless far says that a jump host, or a program, may still have passed
	// on what it held. Both are keep's, and of others once that has ended.
	left time.Time
	far  bool
}

func (g *agent) note(text string) {
	if g.agents.Note != nil {
		g.agents.Note(g.host, text)
	}
}

func (g *agent) heard() time.Time {
	if t := g.stream.Heard(); !t.IsZero() {
		return t
	}
	return g.begun
}

// carrier is a session that runs a bridge.
type carrier struct {
	*Session
	out    *bufio.Reader
	client *Client
}

// Read reads what the agent has sent.
func (c *carrier) Read(p []byte) (int, error) { return c.out.Read(p) }

// Write sends to the agent.
func (c *carrier) Write(p []byte) (int, error) { return c.Stdin.Write(p) }

// Close ends the connection that the session is part of, with what is on its way:
// an agent must not hear late of who has given it up.
func (c *carrier) Close() error {
	if tcp, ok := c.client.line.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c.client.Close()
}

// adopt finds the agent that an earlier controller has started; nil where there is
// none, or none any more. One that is ending is waited for.
func (g *agent) adopt(ctx context.Context, c *Client) (*carrier, error) {
	at, ok := g.agents.Held[g.host]
	if !ok {
		return nil, nil
	}
	g.at = at
	args := []string{"bridge", "join", at.Token}
	join := func() (*carrier, answer, error) { return g.bridge(ctx, c, Command(at.Program, args...)) }
	install := func() (*carrier, answer, error) { return g.install(ctx, c, args...) }
	for own := false; ; {
		carrier, said, err := join()
		switch {
		case err != nil && !own && ctx.Err() == nil: // the program has gone, as when /tmp is new after a boot
			own, join = true, install
			continue
		case err != nil:
			return nil, err
		case said.state == bridge.Ready:
			g.at.Program = said.program
			return carrier, nil
		case said.state != bridge.Ending || said.boot != at.Boot:
			return nil, nil
		}
		_ = carrier.Session.Close() // and not the connection
		select {
		case <-time.After(retryFirst):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: the agent of the earlier controller is ending: %s", c.Peer(), said.words)
		}
	}
}

// start starts the agent.
func (g *agent) start(ctx context.Context, c *Client) (*carrier, error) {
	carrier, said, err := g.install(ctx, c, "bridge", "start", g.stream.ID().String(), word(g.host))
	if err != nil {
		return nil, err
	}
	if said.state != bridge.Ready {
		return nil, errors.Join(fmt.Errorf("%s: the agent cannot be started: %s", c.Peer(), said.words), carrier.Close())
	}
	g.at = job.Agent{Token: g.stream.ID().String(), Program: said.program, Boot: said.boot}
	if g.agents.Started != nil {
		g.agents.Started(g.host, g.at)
	}
	return carrier, nil
}

// install runs a bridge by this very program, which is put on the host first where
// it is missing.
func (g *agent) install(ctx context.Context, c *Client, args ...string) (*carrier, answer, error) {
	command, err := StartCommand(g.agents.Program, args...)
	if err != nil {
		return nil, answer{}, err
	}
	carrier, said, err := g.bridge(ctx, c, command)
	var not *notInstalled
	if !errors.As(err, &not) {
		return carrier, said, err
	}
	path, note, err := Install(ctx, c, g.agents.Program)
	if err != nil {
		return nil, answer{}, err
	}
	if note != "" {
		g.note(note)
	}
	return g.bridge(ctx, c, Command(path, args...))
}

// word is a host's name as an argument: what is not plain is left out, since it
// only tells people who look at ps whose agent that is.
func word(host string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, host)
	if plain == "" || plain[0] == '-' {
		return "host"
	}
	return plain
}

// answer is what a bridge says first.
type answer struct {
	state                bridge.State
	boot, program, words string
}

// notInstalled is a host that has not the program.
type notInstalled struct{}

func (*notInstalled) Error() string { return "the program is not there" }

// maxGreeting bounds what a login shell may print before a bridge speaks.
const maxGreeting = 64 << 10

// bridge runs a bridge on the host and reads its answer.
func (g *agent) bridge(ctx context.Context, c *Client, command string) (*carrier, answer, error) {
	session, err := c.Exec(ctx, command)
	if err != nil {
		return nil, answer{}, err
	}
	b := &carrier{session, bufio.NewReaderSize(session.Stdout, 64<<10), c}
	// A session's end would have to be agreed upon with the host.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	for total := 0; total < maxGreeting; {
		line, err := b.out.ReadString('\n')
		total += len(line)
		if rest, ok := strings.CutPrefix(line, bridge.Greeting); ok && err == nil {
			if said, ok := parseAnswer(rest); ok {
				return b, said, nil
			}
		}
		if err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, answer{}, fmt.Errorf("%s: starting a bridge: %w", c.Peer(), context.Cause(ctx))
	}
	ended, cancel := context.WithTimeout(ctx, byeLimit)
	defer cancel()
	defer context.AfterFunc(ended, func() { _ = session.Close() })()
	code, err := session.Wait()
	if err == nil && code == NotInstalled {
		return nil, answer{}, &notInstalled{}
	}
	_ = session.Close()
	said := "nothing"
	if words := strings.TrimSpace(session.Stderr()); words != "" {
		said = quote(words)
	}
	if err != nil {
		return nil, answer{}, fmt.Errorf("starting a bridge, which said %s: %w", said, err)
	}
	return nil, answer{}, fmt.Errorf("%s: gangrun does not answer there; what did said %s", c.Peer(), said)
}

// parseAnswer reads the words behind a Greeting.
func parseAnswer(line string) (answer, bool) {
	words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
	if len(words) < 3 {
		return answer{}, false
	}
	program, text, ok := strings.Cut(words[2], "\t")
	return answer{bridge.State(words[0]), words[1], program, text}, ok
}

// errAgentGone and errHostGone are why a stream ends whose agent is no more.
var (
	errAgentGone = errors.New("the agent was killed or has ended")
	errHostGone  = errors.New("the host has closed its connections and does not answer any more")
)

// keep has the stream carried until it ends: by first, and whenever that breaks or
// falls silent by another connection. A try that takes long goes on beside those
// that follow it: where the line was cut, a new connection is sooner there, and
// where the host has much to do, the old one.
func (g *agent) keep(first *carrier) {
	ctx, cancel := context.WithCancel(g.life)
	carried := make(chan bool) // whether the host has hung up
	tried := make(chan try)
	on, trying := 0, 0
	carry := func(c *carrier) {
		on++
		if _, direct := c.client.line.Conn.(*net.TCPConn); !direct {
			g.far = true
		}
		go func() { // Carry ends with ctx at the latest
			if g.stream.Carry(ctx, c) == nil { // the last thing that an agent does
				g.die()
			}
			left := c.hungUp()
			_ = c.Close()
			carried <- left
		}()
	}
	var silent <-chan struct{} // closed when a host that has hung up does not answer
	stopAsking := func() {}
	defer func() {
		cancel()
		stopAsking()
		for on+trying > 0 {
			select {
			case <-carried:
				on--
				g.left = time.Now()
			case t := <-tried:
				trying--
				t.close()
			}
		}
	}()
	carry(first)
	look := time.NewTicker(retryFirst)
	defer look.Stop()
	well := func() bool { return on > 0 && time.Since(g.heard()) < retrySilent }
	wait, next := time.Duration(0), time.Now()
	for !g.over() {
		if !well() && on < 2 && trying < retries && !time.Now().Before(next) {
			trying++
			next = time.Now().Add(retryEvery)
			go func() { // join ends with ctx at the latest
				limited, cancel := context.WithTimeout(ctx, retryLimit)
				defer cancel()
				tried <- g.join(limited)
			}()
		}
		select {
		case <-ctx.Done():
			return
		case left := <-carried:
			g.left = time.Now()
			if on--; on > 0 {
				continue
			}
			if left && silent == nil && !g.over() {
				silent, stopAsking = askUntilSilent(ctx, first.client.address())
			}
			wait, next = 0, time.Now()
		case <-silent:
			g.give(errHostGone)
			g.stream.Abort(errHostGone)
			return
		case t := <-tried:
			trying--
			if !well() {
				g.give(t.err)
			}
			switch {
			case t.state == bridge.Gone:
				g.die()
				g.give(errAgentGone)
				g.stream.Abort(errAgentGone)
			case t.carrier != nil && !well():
				carry(t.carrier)
				stopAsking()
				wait, silent = 0, nil
			default:
				t.close()
				wait = min(max(2*wait, retryFirst), retryMost)
				next = time.Now().Add(wait)
			}
		case <-look.C:
		}
	}
}

// try is what has come of a try to reach an agent again.
type try struct {
	carrier *carrier // nil where there is none
	state   bridge.State
	err     error // why nobody was asked; nil where a bridge has answered
}

func (t try) close() {
	if t.carrier != nil {
		_ = t.carrier.Close()
	}
}

// over reports whether the stream has ended, so that nothing is to be carried.
func (g *agent) over() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dead
}

func (g *agent) die() {
	g.mu.Lock()
	g.dead = true
	g.mu.Unlock()
}

// give notes why the agent cannot be reached; nil where it can.
func (g *agent) give(why error) {
	g.mu.Lock()
	g.wrong = why
	g.mu.Unlock()
}

// trouble is why the agent cannot be reached, nil where it can or nobody knows.
func (g *agent) trouble() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong
}

// hungUp reports whether a carrier that has ended was ended by the host, and not
// for its silence.
func (c *carrier) hungUp() bool {
	var lost *LostError
	return !errors.As(c.client.Err(), &lost) || lost.Silence == 0
}

// answers reports whether a host's kernel answers at all, with a connection or its
// refusal; true where ctx ends first.
func answers(ctx context.Context, at netip.AddrPort) bool {
	asking, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var questions sync.WaitGroup
	defer questions.Wait()
	defer cancel()
	heard := make(chan struct{}, 1)
	again := time.NewTicker(answerEvery)
	defer again.Stop()
	for {
		questions.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(asking, "tcp", at.String())
			if err == nil {
				_ = conn.Close()
			}
			if err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
				select {
				case heard <- struct{}{}:
				default:
				}
			}
		})
		select {
		case <-heard:
			return true
		case <-asking.Done():
			return ctx.Err() != nil
		case <-again.C:
		}
	}
}

// askUntilSilent asks a host whether it answers, ever more seldom, and closes
// silent when it does not. One that is reached through another host is not asked.
func askUntilSilent(ctx context.Context, at netip.AddrPort) (silent <-chan struct{}, stop func()) {
	if !at.IsValid() {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for wait := answerEvery; answers(ctx, at); wait = min(2*wait, time.Second) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		close(gone)
	}()
	return gone, func() { cancel(); <-done }
}

// join makes a new connection to the agent. A host that was started anew is one
// whose agent is gone.
func (g *agent) join(ctx context.Context) try {
	c, err := g.agents.Dialer.Dial(ctx, g.agents.Target(g.host))
	if err != nil {
		var unreached *DialError
		if errors.As(err, &unreached) && (unreached.Reason == DialTimeout || unreached.Reason == DialCancelled) {
			err = nil // its silence tells as much
		}
		return try{nil, bridge.Failed, err}
	}
	b, said, err := g.bridge(ctx, c, Command(g.at.Program, "bridge", "join", g.at.Token))
	switch {
	case err != nil:
		said.state = bridge.Failed
	case said.state == bridge.Ready:
		return try{b, bridge.Ready, nil}
	case said.state == bridge.Ending && said.boot != g.at.Boot:
		said.state = bridge.Gone
	}
	_ = c.Close()
	return try{nil, said.state, err}
}

// end closes the stream and waits until the agent is gone: because it has ended in
// order, because the host says so, or because it has heard nothing for as long as
// an agent lives then.
func (g *agent) end(ctx context.Context) error {
	defer func() { g.cancel(); <-g.ended }()
	_ = g.stream.Close()
	if time.Since(g.heard()) < retrySilent {
		bye, cancel := context.WithTimeout(ctx, byeLimit)
		defer cancel()
		if g.gone(bye) && g.over() {
			return nil
		}
	}
	g.cancel() // from here on it hears nothing
	<-g.ended
	if g.over() {
		return nil
	}
	if g.far {
		g.left = time.Now()
	}
	deadline := g.left.Add(g.agents.OrphanGrace + endSlack)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	state := bridge.Failed // the last that a host has told
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryMost) {
		try, cancel := context.WithTimeout(ctx, retryLimit)
		found := g.join(try)
		cancel()
		found.close()
		if found.state == bridge.Gone {
			return nil
		}
		if found.state != bridge.Failed || ctx.Err() == nil { // else there was no time to ask
			state = found.state
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	switch {
	case time.Now().Before(deadline):
		return fmt.Errorf("%s may still have ranks until %s: its agent has not been heard to end: %w", g.host, deadline.Format(time.TimeOnly), context.Cause(ctx))
	case state == bridge.Ready || state == bridge.Ending:
		return fmt.Errorf("the agent on %s is still there %s after it has heard its controller last: %s may still have ranks", g.host, time.Since(g.left).Round(time.Second), g.host)
	}
	return nil
}

// gone waits until nothing is carried any more, and reports whether it has come to
// that.
func (g *agent) gone(ctx context.Context) bool {
	select {
	case <-g.ended:
	case <-ctx.Done():
		return false
	}
	return true
}

// address is the host's own, where that is known.
func (c *Client) address() netip.AddrPort {
	at, err := netip.ParseAddrPort(c.peer.Addr)
	if err != nil {
		return netip.AddrPort{} // through a jump host
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

var _ io.ReadWriteCloser = (*carrier)(nil)
