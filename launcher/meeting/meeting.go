// Package meeting makes the hosts of a gang test the connections between them, and measure how fast the hosts
// and these connections are. It sends requests to the agents of the hosts.
package meeting

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// meeting is a test of the connections between the hosts of a gang on several machines.
type meeting struct {
	ctx       context.Context // the context of the streams
	cancel    context.CancelFunc
	connected []*agents.Agent
	hosts     []job.Host
	streams   []wire.Agent_MeetClient
	peers     []*wire.Peer
}

// gather starts a meeting. When it returns, each host has opened a port. Each host has also written a test file into
// the directory that dir returns for that host, unless dir returns "". The caller must call cancel, even after an
// error.
func gather(ctx context.Context, connected []*agents.Agent, hosts []job.Host, dir func(i int) string) (*meeting, error) {
	m := &meeting{connected: connected, hosts: hosts, streams: make([]wire.Agent_MeetClient, len(connected)), peers: make([]*wire.Peer, len(connected))}
	m.ctx, m.cancel = context.WithCancel(ctx)
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return m, err
	}
	return m, m.each(func(i int) (err error) {
		if m.streams[i], err = connected[i].Client.Meet(m.ctx); err != nil {
			return err
		}
		reply, err := m.ask(i, &wire.MeetRequest{Secret: secret, Address: hosts[i].Address, Dir: []byte(dir(i))})
		if err != nil {
			return err
		}
		m.peers[i] = &wire.Peer{Host: hosts[i].Name, Address: hosts[i].Address, Port: reply.Port, Error: reply.Error, Wrote: reply.Wrote}
		return nil
	})
}

// each calls f for all hosts at the same time.
func (m *meeting) each(f func(i int) error) error {
	return agents.Each(len(m.connected), func(i int) error {
		if err := f(i); err != nil {
			return m.failed(i, err)
		}
		return nil
	})
}

// failed adds the name of the host to an error. It also adds the reason why the host's agent failed, if that is known.
func (m *meeting) failed(i int, err error) error {
	return fmt.Errorf("have host %s meet the others: %w", m.hosts[i].Name, m.connected[i].Failed(m.ctx, err))
}

// ask sends a request to a host and returns its reply.
func (m *meeting) ask(i int, r *wire.MeetRequest) (*wire.MeetReply, error) {
	if err := m.streams[i].Send(r); err != nil && err != io.EOF { // after io.EOF, Recv returns the reason
		return nil, err
	}
	return m.streams[i].Recv()
}

// end ends the meeting. The hosts have then removed their test files.
func (m *meeting) end() error {
	return m.each(func(i int) error {
		if err := m.streams[i].CloseSend(); err != nil {
			return err
		}
		_, err := m.streams[i].Recv()
		if err == io.EOF {
			return nil
		}
		return err
	})
}

// Meet makes the hosts of a gang on several machines connect to each other, and look for each other's test
// files in dir. It stores the results, and the differences of the clocks, in facts. For any number of hosts, it
// takes at most about 5 s, which is the time limit of the agents.
func Meet(ctx context.Context, connected []*agents.Agent, hosts []job.Host, dir string, facts []job.Facts) error {
	m, err := gather(ctx, connected, hosts, func(i int) string {
		if facts[i].Check != nil && facts[i].Check.Error == "" && facts[i].Check.Kind == job.ErrorNone {
			return dir
		}
		return ""
	})
	defer m.cancel() // ends the streams that are still open
	if err != nil {
		return err
	}
	err = m.each(func(i int) error {
		// Each host begins with the next one. Otherwise, all hosts would connect to the same host first.
		reply, err := m.ask(i, &wire.MeetRequest{Peers: slices.Concat(m.peers[i+1:], m.peers[:i])})
		if err != nil {
			return err
		}
		facts[i].Skew, facts[i].SkewWithin = connected[i].Clock.Skew, connected[i].Clock.Within
		if len(reply.Shared) > 0 {
			if err := exact.Unmarshal(reply.Shared, &facts[i].Shared); err != nil {
				return err
			}
		}
		return exact.Unmarshal(reply.Reach, &facts[i].Reach)
	})
	if err != nil {
		return err
	}
	return m.end()
}
