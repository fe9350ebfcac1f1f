package agents

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"
)

// Dialer starts agents on hosts.
type Dialer interface {
	// Dial starts the agent of a host, and returns the link to the agent.
	Dial(ctx context.Context, host string) (Link, error)
}

// Link is a connection to a running agent.
type Link struct {
	Conn net.Conn
	// Local says that the agent is on this machine.
	Local bool
	// Own says that the user has listed this machine itself as a host. It is false for a
	// simulated host.
	Own bool
	// Heard returns the time of the last contact with the agent. Heard is nil if Conn ends as
	// soon as the agent ends.
	Heard func() time.Time
	// Trouble returns why the agent cannot be reached at present. It returns nil if the agent
	// can be reached or the reason is unknown. The field Trouble is nil if Heard is nil.
	Trouble func() error
	// Address is the address at which the host was reached; zero on this machine.
	Address netip.Addr
	// Held says that an earlier controller has started the agent. The agent may still have a
	// gang of that controller.
	Held bool
	// Restarted says that the host was booted after an earlier controller had started an
	// agent there.
	Restarted bool
	// End closes Conn and returns when the agent and its descendants have ended. It returns an
	// error if some of them may still run.
	End func(ctx context.Context) error
	// Killed names, after End, the processes that End has killed because the agent and its
	// watchdogs had been killed and could not do so. It is nil if the link reports them in another
	// way.
	Killed func() string
	// Rest fetches what the agent has left on its host if it did not end normally. Before fetches
	// what an agent of an earlier controller has left. Rest is nil if the agent leaves nothing.
	// Before is nil if no earlier controller had an agent on the host.
	Rest, Before func(ctx context.Context, want RestRequest) error
}

// RestRequest asks for the output of ranks that an agent has left on its host. The agent itself
// is gone.
type RestRequest struct {
	Gang string
	// Have says how many bytes of each log have arrived. Its keys are the names of the logs.
	Have map[string]int64
	// Take is called once for each log that the host has, with the bytes that have not arrived.
	// whole reports that the log is complete.
	Take func(name string, whole bool, rest io.Reader) error
	// Last says that no further request follows, so that the host can remove the directory.
	Last bool
}
