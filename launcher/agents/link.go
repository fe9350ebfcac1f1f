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
	// Local is true if the agent is on this machine.
	Local bool
	// Own is true if the user has listed this machine itself as a host. It is false for a simulated host.
	Own bool
	// Heard returns the time of the last contact with the agent. It is nil for an agent on this machine: Conn breaks
	// as soon as that agent ends, so gangrun need not watch for silence.
	Heard func() time.Time
	// Trouble returns why the agent cannot be reached at present. It returns nil if the agent
	// can be reached or the reason is unknown. The field Trouble is nil if Heard is nil.
	Trouble func() error
	// Address is the address at which the host was reached; zero on this machine.
	Address netip.Addr
	// Held is true if an earlier controller has started the agent. The agent may still run a gang of that
	// controller.
	Held bool
	// Restarted is true if the host was booted after an earlier controller had started an agent there.
	Restarted bool
	// End closes Conn and returns when the agent and its descendants have ended. It returns an
	// error if some of them may still run.
	End func(ctx context.Context) error
	// Killed is called after End. It names the processes that End had to kill, because the agent and its watchdogs
	// had been killed before they could kill them. Killed is nil if the link reports these processes in another way.
	Killed func() string
	// If the agent did not end normally, Rest fetches the output that the agent has left on its host. Rest is
	// nil if agents of this kind leave nothing. Before fetches the output that an agent of an earlier
	// controller has left. Before is nil if no earlier controller had an agent on the host.
	Rest, Before func(ctx context.Context, want RestRequest) error
}

// RestRequest asks for the output of ranks that an agent has left on its host. The agent itself
// is gone.
type RestRequest struct {
	Gang string
	// Have says how many bytes of each log have already arrived. Its keys are the names of the logs.
	Have map[string]int64
	// Take is called once for each log that the host has, with the bytes that have not arrived. whole is true
	// if the log is complete.
	Take func(name string, whole bool, rest io.Reader) error
	// Last is true if no further request follows, so that the host can remove the directory of the logs.
	Last bool
}
