package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/gangrun/gangrun/internal/bridge"
)

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

// hungUp reports whether a carrier that has ended was ended by the host, and not
// for its silence.
func (c *carrier) hungUp() bool {
	var lost *LostError
	return !errors.As(c.client.Err(), &lost) || lost.Silence == 0
}

// answer is what a bridge says first.
type answer struct {
	state                bridge.State
	boot, program, words string
}

// notInstalled is a host that has not the program.
type notInstalled struct{}

func (*notInstalled) Error() string { return "the program is not there" }

// noAnswer is a command that was to run a bridge, and has ended without a word of one.
type noAnswer struct {
	Peer
	said string
}

func (e *noAnswer) Error() string {
	return fmt.Sprintf("%s: gangrun does not answer there; what did said %s", e.Peer, e.said)
}

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
	if err == nil && code == exitNotInstalled {
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
	return nil, answer{}, &noAnswer{c.Peer(), said}
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

var _ io.ReadWriteCloser = (*carrier)(nil)
