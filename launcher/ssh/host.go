package ssh

import (
	"context"
	"io"
	"net/netip"
)

// Dialer opens connections to hosts.
type Dialer interface {
	Dial(ctx context.Context, host string) (*Conn, error)
}

// Conn is an open connection to a host.
type Conn struct {
	Runner
	Host    Host
	Notes   []string       // what the user should know about the connection
	Address netip.AddrPort // of the host; not valid if it is not known
	// Self returns the command that runs the program of this process on the host, which has it
	// already. It is nil if the program must be installed first.
	Self func(args ...string) (command string)
	// Relayed means that another host or program passes the data on, and may do so for a
	// while after the connection has ended.
	Relayed bool
}

// Runner runs commands on the host of a connection.
type Runner interface {
	// Run starts command, which is a line for the user's login shell. ctx limits only the start.
	Run(ctx context.Context, command string) (*Process, error)
	// Close ends the connection with all its processes. Data that was written and has not been sent
	// is discarded, so that an agent cannot receive it after data of a later connection.
	Close() error
	// Err returns why the connection was lost, or nil. An error that has a method Timeout which
	// returns true means that the host was silent.
	Err() error
}

// Process is a command that runs on a host.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	Command
}

// Command is what can be done with a command besides reading and writing.
type Command interface {
	// Wait returns the exit code. It returns an error if the code is not known.
	Wait() (code int, err error)
	// Stderr returns the end of what the command has written to standard error.
	Stderr() string
	// Close ends the input and output of the command, and does not wait for its end.
	Close() error
}

// Host names a host in messages.
type Host struct {
	Name  string // as the user named it
	Way   string // the host and how it is reached
	Login string // the shell command that logs in to it: "ssh -p 2222 user@host"
}

// String returns the host and how it is reached.
func (h Host) String() string { return h.Way }
