package agents

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"
)

// Dialer gets an agent onto a host.
type Dialer interface {
	// Dial starts the agent and returns the link to it.
	Dial(ctx context.Context, host string) (Link, error)
}

// Link is a connection to a running agent.
type Link struct {
	Conn net.Conn
	// Local says that the agent is on this machine.
	Local bool
	// Own says that a list of hosts names this machine so; it is not where the host is
	// only simulated.
	Own bool
	// Heard returns when the agent was last heard of. It is nil where Conn itself
	// tells at once that the agent is gone.
	Heard func() time.Time
	// Trouble returns why the agent cannot be reached at present, nil where it can
	// be or nobody knows. It is nil where Heard is.
	Trouble func() error
	// Address is that by which the host was reached; zero on this machine.
	Address netip.Addr
	// Held says that an earlier controller has started the agent, which may hold a
	// gang of it.
	Held bool
	// Restarted says that an earlier controller has started an agent there, and that the
	// host was started anew since.
	Restarted bool
	// End closes Conn and returns once the agent and every process below it are
	// gone. An error says that they may not be.
	End func(ctx context.Context) error
	// Killed names, once End has returned, the processes that were killed since agent and
	// watchdogs had been killed together and had left them; nil where that is told
	// otherwise.
	Killed func() string
	// RestRequest brings what the agent has left on its host, once it has ended otherwise
	// than in order; Before what one has left that an earlier controller had started
	// and that is gone. They are nil where there is no such thing.
	Rest, Before func(ctx context.Context, want RestRequest) error
}

// RestRequest is what is wanted of an agent that is gone, and had not handed on all that
// its ranks have printed.
type RestRequest struct {
	Gang string
	// Have is how many bytes of each log are here, by its name.
	Have map[string]int64
	// Take is called once with the rest of each log that the host has; whole says
	// that nothing is missing at its end.
	Take func(name string, whole bool, rest io.Reader) error
	// Last says that nothing else is wanted of what the agent has left.
	Last bool
}
