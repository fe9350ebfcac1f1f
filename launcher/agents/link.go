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
	// Own says that a host that the user has listed is really this machine, not a simulated host.
	Own bool
	// Heard returns the time of the last contact with the agent. It is nil if Conn ends as
	// soon as the agent does.
	Heard func() time.Time
	// Trouble returns why the agent cannot be reached at present. It returns nil if the agent
	// can be reached or the reason is unknown. Trouble itself is nil if Heard is.
	Trouble func() error
	// Address is the address at which the host was reached; zero on this machine.
	Address netip.Addr
	// Held says that an earlier controller has started the agent. The agent may have a gang
	// of that controller.
	Held bool
	// Restarted says that the host was booted after an earlier controller had started an
	// agent there.
	Restarted bool
	// End closes Conn and returns when the agent and its descendants have ended. It returns an
	// error if they may not have ended.
	End func(ctx context.Context) error
	// If an agent was killed together with its watchdogs, its processes live on, and End kills
	// them. Killed then names them; it is called after End. It is nil if the link reports these in
	// another way.
	Killed func() string
	// Rest fetches what the agent has left on its host if it did not end normally. Before fetches
	// what an agent of an earlier controller has left. Rest is nil for agents that leave nothing,
	// Before if no earlier controller had an agent there.
	Rest, Before func(ctx context.Context, want RestRequest) error
}

// RestRequest asks for the output of ranks that an agent, which is gone, has left on its host.
type RestRequest struct {
	Gang string
	// Have is how many bytes of each log have arrived, by its name.
	Have map[string]int64
	// Take is called once for each log that the host has, with the rest of it. whole reports
	// that nothing is missing at its end.
	Take func(name string, whole bool, rest io.Reader) error
	// Last says that no further request follows: the host can remove the directory.
	Last bool
}
