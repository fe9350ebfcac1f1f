package launcher

import (
	"context"
	"errors"
	"slices"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/agents"
)

// contain makes every host prepare the container, or the contained view, for its ranks. mixed is the value for
// job.Outcome.Mixed. If a host cannot do that, the error is a *job.UncontainedError.
func (l *Launcher) contain(ctx context.Context, a job.Attempt, nodes []*node) (mixed bool, err error) {
	sharing := int32(0)
	for _, n := range nodes {
		if n.agent.Link.Local {
			sharing++
		}
	}
	replies := make([]bool, len(nodes))
	err = first(agents.Each(len(nodes), func(i int) error {
		agent := nodes[i].agent
		ask := &wire.ContainRequest{Sharing: max(1, sharing), Gang: a.GangName()}
		if a.Box != nil {
			box := *a.Box
			if a.Contain != nil {
				box.Discard, box.Empty = true, a.Contain.Empty
			}
			data, err := exact.Marshal(l.boxFor(&box, nodes[i].gpus()))
			if err != nil {
				return err
			}
			ask.Box = data
		} else {
			ask.Work, ask.Needed, ask.Empty = wire.Bytes(a.Contain.Work), wire.Bytes(a.Contain.Needed), []byte(a.Contain.Empty)
		}
		if agent.Link.Local {
			ask.LogDir = []byte(a.LogDir)
		}
		reply, err := agent.Client.Contain(ctx, ask)
		if err != nil {
			return agent.Failed(ctx, err)
		}
		if len(reply.Reason) > 0 {
			return &job.UncontainedError{Host: agent.Host, Reason: string(reply.Reason)}
		}
		replies[i] = reply.Mixed
		return nil
	}))
	return slices.Contains(replies, true), err
}

// first returns the first of several joined errors that is a *job.UncontainedError. If there is none, first returns
// err.
func first(err error) error {
	var cannot *job.UncontainedError
	if errors.As(err, &cannot) {
		return cannot
	}
	return err
}

// lookAtFiles makes every host record the state of its files. If again is true, it returns the files that have changed
// since the first call.
func lookAtFiles(ctx context.Context, a job.Attempt, nodes []*node, again bool) ([]job.Changed, error) {
	found := make([]job.Changed, len(nodes))
	err := agents.Each(len(nodes), func(i int) error {
		agent := nodes[i].agent
		reply, err := agent.Client.Files(ctx, &wire.FilesRequest{Gang: a.GangName(), Dirs: wire.Bytes(a.Watch.Dirs), But: wire.Bytes(a.Watch.But), Again: again})
		if err != nil {
			return agent.Failed(ctx, err)
		}
		found[i] = job.Changed{Host: agent.Host, More: reply.More, Partly: reply.Partly}
		found[i].Made, found[i].Changed = wire.Strings(reply.Made), wire.Strings(reply.Changed)
		return nil
	})
	return found, err
}
