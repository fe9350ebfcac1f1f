package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// stderrLimit bounds what is kept of a command's standard error.
const stderrLimit = 16 << 10

// A Session is one command that runs on a host. Standard output must be read to
// its end, or the session closed: a host's sshd stops a command that nobody
// reads from.
type Session struct {
	Stdin  io.WriteCloser // Close is the end of the command's input
	Stdout io.Reader      // ends with the command's output or with the connection

	client  *Client
	session *xssh.Session
	stderr  tail
	close   func() error
	closed  chan struct{} // closed by Close
	ended   chan struct{} // closed when code and err are there
	code    int
	err     error
}

// Exec starts command, a line for the user's login shell on the host. ctx bounds
// the start only; Close ends the session.
func (c *Client) Exec(ctx context.Context, command string) (*Session, error) {
	type opened struct {
		session *Session
		err     error
	}
	result := make(chan opened)
	started := c.spawn(func() {
		s, err := c.start(command)
		select {
		case result <- opened{s, err}:
		case <-ctx.Done():
			if s != nil {
				s.Close()
			}
		}
	})
	if !started {
		return nil, c.broken(ctx, nil)
	}
	select {
	case r := <-result:
		return r.session, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: starting a command: %w", c.peer, ctx.Err())
	}
}

// openLimit bounds what is left to do of opening a session once the connection has
// ended.
const openLimit = time.Second

// open opens a session. x/crypto/ssh may never do so where the connection ends just
// then, and not by a read that fails (see line.Write): that is left behind.
func (c *Client) open() (*xssh.Session, error) {
	type opened struct {
		session *xssh.Session
		err     error
	}
	result := make(chan opened, 1)
	go func() {
		session, err := c.ssh.NewSession()
		result <- opened{session, err}
	}()
	select {
	case r := <-result:
		return r.session, r.err
	case <-c.done:
	}
	late := time.NewTimer(openLimit)
	defer late.Stop()
	select {
	case r := <-result:
		return r.session, r.err
	case <-late.C:
		return nil, errEnded
	}
}

func (c *Client) start(command string) (*Session, error) {
	session, err := c.open()
	if err != nil {
		var refused *xssh.OpenChannelError
		if errors.As(err, &refused) {
			return nil, &SessionError{Peer: c.peer, Err: err}
		}
		return nil, c.broken(context.Background(), err)
	}
	s := &Session{client: c, session: session, closed: make(chan struct{}), ended: make(chan struct{})}
	s.close = sync.OnceValue(func() error {
		close(s.closed)
		if err := session.Close(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	})
	session.Stderr = &s.stderr
	if s.Stdin, err = session.StdinPipe(); err == nil {
		s.Stdout, err = session.StdoutPipe()
	}
	if err != nil {
		session.Close()
		return nil, err // not started yet: cannot be
	}
	if err := session.Start(command); err != nil {
		session.Close()
		if errors.Is(err, io.EOF) || c.Err() != nil {
			return nil, c.broken(context.Background(), err)
		}
		return nil, &SessionError{Peer: c.peer, Err: errors.New("the host does not take commands")}
	}
	c.work.Go(func() {
		s.code, s.err = s.result(session.Wait())
		close(s.ended)
	})
	return s, nil
}

// result is what a session's end means.
func (s *Session) result(err error) (int, error) {
	var exit *xssh.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	}
	return -1, s.client.broken(context.Background(), err)
}

// Wait waits for the command's end and says its exit code, 128 and the signal's
// number where a signal ended it. err is set where that is not known: a
// *LostError when the connection ended, or when the session was closed first.
func (s *Session) Wait() (code int, err error) {
	select {
	case <-s.ended:
		return s.code, s.err
	case <-s.closed:
	}
	select {
	case <-s.ended:
		return s.code, s.err
	default:
		return -1, fmt.Errorf("%s: the session was closed before its command ended", s.client.peer)
	}
}

// Stderr is what the command has written to its standard error; of much, the
// last 16 KiB.
func (s *Session) Stderr() string { return s.stderr.String() }

// Close ends the session. The command is not ended by it: it sees the end of
// its input and, when it writes, a broken pipe.
func (s *Session) Close() error { return s.close() }

// SessionError is a host that takes no further command on a connection.
type SessionError struct {
	Peer
	Err error
}

// Error says what it said.
func (e *SessionError) Error() string {
	return fmt.Sprintf("%s: no command can be started: %v", e.Peer, e.Err)
}

// Unwrap is what the host said.
func (e *SessionError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *SessionError) Hint() string {
	return fmt.Sprintf("see MaxSessions and ForceCommand in the sshd_config of %s, and the user's login shell there; see: %s true", e.Name, e.command())
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
	cut  bool
}

// Write keeps p, and forgets what came long before it.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - stderrLimit; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
		t.cut = true
	}
	return len(p), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "..." + string(t.data)
	}
	return string(t.data)
}
