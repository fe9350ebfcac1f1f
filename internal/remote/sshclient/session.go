package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// Session is a command that runs on a host. The caller must read standard output to its end or
// close the session, because sshd blocks a command whose output is not read.
type Session struct {
	Stdin  io.WriteCloser // Close ends the input of the command
	Stdout io.Reader      // ends when the command closes its output or the connection ends

	client  *Client
	session *xssh.Session
	stderr  tail
	close   func() error
	closed  chan struct{} // closed by Close
	ended   chan struct{} // closed when code and err are set
	code    int
	err     error
}

// Exec starts command, which is a line for the user's login shell on the host. ctx limits only
// the start. Close ends the session.
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

// openLimit is how long the opening of a session may go on after the connection has ended.
const openLimit = time.Second

// open opens a session. x/crypto/ssh may never return if the connection ends at that moment for another reason than a
// failed read (see conn.Write). open then leaves its goroutine behind.
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

// start starts a command.
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
		return nil, err
	}
	if err := session.Start(command); err != nil {
		session.Close()
		if errors.Is(err, io.EOF) || c.Err() != nil {
			return nil, c.broken(context.Background(), err)
		}
		return nil, &SessionError{Peer: c.peer, Err: errors.New("the host does not accept commands")}
	}
	c.work.Go(func() {
		s.code, s.err = s.result(session.Wait())
		close(s.ended)
	})
	return s, nil
}

// result returns the exit code of a session that has ended with err.
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

// Wait waits until the command has ended, and returns its exit code. If a signal ended the command, the code is
// 128 plus the number of the signal. If the code is not known, Wait returns an error: a *LostError if the
// connection has ended, or another error if the session was closed first.
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

// Stderr returns the last 16 KiB of what the command has written to standard error.
func (s *Session) Stderr() string { return s.stderr.String() }

// Close ends the session. It does not end the command. But the command finds that its input has ended, and can
// no longer write to its output.
func (s *Session) Close() error { return s.close() }

// SessionError is the error if a host does not start a command on an open connection.
type SessionError struct {
	Peer
	Err error
}

// Error names the host, and repeats what the host has answered.
func (e *SessionError) Error() string {
	return fmt.Sprintf("%s: no command can be started: %v", e.Peer, e.Err)
}

// Unwrap returns what the host answered.
func (e *SessionError) Unwrap() error { return e.Err }

// Hint says what to do next.
func (e *SessionError) Hint() string {
	return fmt.Sprintf("see MaxSessions and ForceCommand in the sshd_config of %s, and the user's login shell there; to test the login: %s true", e.Name, e.Command())
}
