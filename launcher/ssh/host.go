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
	Notes   []string       // notes for the user about the connection
	Address netip.AddrPort // address of the host; not valid if unknown
	// Self returns the command that runs the program of this process on the host. It is nil if
	// the host does not have the program yet.
	Self func(args ...string) (command string)
	// Relayed is true if another host or program forwards the data. That other host or program may still
	// forward data after the connection has ended.
	Relayed bool
}

// Runner runs commands on the host of a connection.
type Runner interface {
	// Run starts command, a line for the user's login shell. ctx limits only the start.
	Run(ctx context.Context, command string) (*Process, error)
	// Close ends the connection and all its processes. It discards data that was written but not sent yet.
	// Otherwise an agent could receive that data after data of a later connection.
	Close() error
	// Err returns why the connection was lost, or nil. If the connection was given up because the host was
	// silent, the error has a method Timeout that returns true.
	Err() error
}

// Process is a command that runs on a host.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	Command
}

// Command controls a running command.
type Command interface {
	// Wait returns the exit code. It returns an error if the code is not known.
	Wait() (code int, err error)
	// Stderr returns the last part of what the command has written to standard error.
	Stderr() string
	// Close closes the input and output of the command. It does not wait until the command
	// ends.
	Close() error
}

// Host names a host in messages.
type Host struct {
	Name  string // as the user named it
	Way   string // the host, and how gangrun reaches it
	Login string // the shell command that logs in to it, as in "ssh -p 2222 user@host"
	// Suspect is for hints: it names what may be at fault if a gangrun that was started on the host does not
	// answer. If it is empty, hints name the sshd and the login shell.
	Suspect string
}

// String returns the host, and how gangrun reaches it.
func (h Host) String() string { return h.Way }
