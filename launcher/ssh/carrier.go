package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/gangrun/gangrun/internal/remote/bridge"
)

// carrier is a session that runs a bridge.
type carrier struct {
	*talk
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
	state                     bridge.State
	boot, program, words, fix string
}

// noAnswer is a command that was to run a bridge, and has ended without a word of one.
type noAnswer struct {
	Peer
	code            int
	printed, stderr string // to standard output and to standard error
}

// Error says how it ended and what it printed.
func (e *noAnswer) Error() string {
	said := "printed nothing"
	switch out, errs := brief(e.printed), brief(e.stderr); {
	case out != "" && errs != "":
		said = fmt.Sprintf("printed %q, and %q on its standard error", out, errs)
	case out != "" || errs != "":
		said = fmt.Sprintf("printed %q", out+errs)
	}
	return fmt.Sprintf("%s: gangrun does not answer there: the login shell ended with code %d and %s", e.Peer, e.code, said)
}

// Hint says what to do next.
func (e *noAnswer) Hint() string {
	return fmt.Sprintf("see ForceCommand in the sshd_config of %s, and the user's login shell there and its start files (.bashrc and the like); see: %s true", e.Name, e.command())
}

// noisy is a login shell that prints so much that a bridge was not waited for.
type noisy struct {
	Peer
	printed string // of that the beginning
}

// Error says what it printed.
func (e *noisy) Error() string {
	return fmt.Sprintf("%s: gangrun cannot be heard there: the login shell printed more than %d KiB before it started, beginning with %q", e.Peer, maxGreeting>>10, brief(e.printed))
}

// Hint says what to do next.
func (e *noisy) Hint() string {
	return fmt.Sprintf("see what prints that: %s true; have the start files of the login shell there (.bashrc and the like) print nothing unless somebody sits before it: case $- in *i*) ;; *) return;; esac", e.command())
}

// maxWords bounds what an error quotes of what a host has printed, in bytes.
const maxWords = 160

// brief is the beginning of what a host has printed.
func brief(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > maxWords {
		return strings.ToValidUTF8(text[:maxWords], "") + "..."
	}
	return text
}

// maxGreeting bounds what a login shell may print before a bridge speaks.
const maxGreeting = 64 << 10

// bridge runs a bridge on the host and reads its answer.
func (g *agent) bridge(ctx context.Context, c *Client, command string) (*carrier, answer, error) {
	session, err := c.Exec(ctx, command)
	if err != nil {
		return nil, answer{}, err
	}
	return g.answer(ctx, c, newTalk(session))
}

// answer reads the answer of a bridge that has been started.
func (g *agent) answer(ctx context.Context, c *Client, session *talk) (*carrier, answer, error) {
	b := &carrier{session, c}
	// A session's end would have to be agreed upon with the host.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	said, printed, err := b.greeting()
	if err == nil {
		return b, said, nil
	}
	if ctx.Err() != nil {
		return nil, answer{}, fmt.Errorf("%s: starting a bridge: %w", c.Peer(), context.Cause(ctx))
	}
	if errors.Is(err, errNoisy) {
		_ = session.Close()
		return nil, answer{}, &noisy{c.Peer(), printed}
	}
	ended, cancel := context.WithTimeout(ctx, byeLimit)
	defer cancel()
	defer context.AfterFunc(ended, func() { _ = session.Close() })()
	code, err := session.Wait()
	_ = session.Close()
	mute := &noAnswer{c.Peer(), code, printed, session.Stderr()}
	if err != nil {
		if words := brief(printed + mute.stderr); words != "" {
			return nil, answer{}, fmt.Errorf("starting a bridge, which printed %q: %w", words, err)
		}
		return nil, answer{}, fmt.Errorf("starting a bridge: %w", err)
	}
	return nil, answer{}, mute
}

// errNoisy is that more is printed than is waited for.
var errNoisy = errors.New("too much is printed")

// greeting reads up to a bridge's answer. What a login shell prints before may lack
// the end of its line; where no answer comes, printed is the beginning of that.
func (c *carrier) greeting() (said answer, printed string, err error) {
	var before []byte
	for len(before) <= maxGreeting {
		line, err := c.out.ReadSlice('\n')
		if _, rest, ok := strings.Cut(string(line), bridge.Greeting); ok && err == nil {
			if said, ok := parseAnswer(rest); ok {
				return said, "", nil
			}
		}
		before = append(before, line...)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return answer{}, string(before), err
		}
	}
	return answer{}, string(before), errNoisy
}

// parseAnswer reads the words behind a Greeting.
func parseAnswer(line string) (answer, bool) {
	words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
	if len(words) < 3 {
		return answer{}, false
	}
	program, text, ok := strings.Cut(words[2], "\t")
	text, fix, _ := strings.Cut(text, "\t") // an older bridge says no more
	return answer{bridge.State(words[0]), words[1], program, text, fix}, ok
}

var _ io.ReadWriteCloser = (*carrier)(nil)
