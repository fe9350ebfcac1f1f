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

// meet has the hosts of a gang on several machines connect to each other, and look
// for each other's files in the directory dir, and writes what comes of it, and how
// their clocks differ, into facts. It takes no longer than an agent's limits on
// that, about 5 s, however many hosts there are.
func meet(ctx context.Context, connected []*agents.Agent, hosts []job.Host, dir string, facts []job.Facts) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the streams whose end has not been waited for
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	streams := make([]wire.Agent_MeetClient, len(connected))
	peers := make([]*wire.Peer, len(connected))
	// step does the same on every host at once; what it returns is that host's.
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
		if err := streams[i].Send(ask); err != nil && err != io.EOF { // then Recv tells
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
		// Each begins with its neighbour, or all would call on one host first.
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
		_, err := streams[i].Recv() // what was made there is gone
		if err == io.EOF {
			return nil
		}
		return err
	})
}
