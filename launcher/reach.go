package launcher

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

// meet has the hosts of a gang on several machines connect to each other and look for each
// other's files in the directory dir. It stores the results, and how much the clocks differ,
// in facts. It takes at most about 5 s, the agents' own limit, for any number of hosts.
func meet(ctx context.Context, connected []*agents.Agent, hosts []job.Host, dir string, facts []job.Facts) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the streams that are still open
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	streams := make([]wire.Agent_MeetClient, len(connected))
	peers := make([]*wire.Peer, len(connected))
	// step calls f for all hosts at the same time.
	step := func(f func(i int) error) error {
		return agents.Each(len(connected), func(i int) error {
			if err := f(i); err != nil {
				return fmt.Errorf("have host %s meet the others: %w", hosts[i].Name, connected[i].Failed(ctx, err))
			}
			return nil
		})
	}
	err := step(func(i int) (err error) {
		if streams[i], err = connected[i].Client.Meet(ctx); err != nil {
			return err
		}
		ask := &wire.MeetRequest{Secret: secret, Address: hosts[i].Address}
		if facts[i].Check != nil && facts[i].Check.Error == "" && facts[i].Check.Kind == job.ErrorNone {
			ask.Dir = []byte(dir)
		}
		if err := streams[i].Send(ask); err != nil && err != io.EOF { // Recv returns the reason
			return err
		}
		reply, err := streams[i].Recv()
		if err != nil {
			return err
		}
		peers[i] = &wire.Peer{Host: hosts[i].Name, Address: hosts[i].Address, Port: reply.Port, Error: reply.Error, Wrote: reply.Wrote}
		return nil
	})
	if err != nil {
		return err
	}
	err = step(func(i int) error {
		// Each host begins with the next one; otherwise all would connect to one host first.
		others := slices.Concat(peers[i+1:], peers[:i])
		if err := streams[i].Send(&wire.MeetRequest{Peers: others}); err != nil && err != io.EOF {
			return err
		}
		reply, err := streams[i].Recv()
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
	return step(func(i int) error {
		if err := streams[i].CloseSend(); err != nil {
			return err
		}
		_, err := streams[i].Recv() // the host has removed its test files
		if err == io.EOF {
			return nil
		}
		return err
	})
}
