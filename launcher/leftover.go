package launcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/leftover"
	"github.com/gangrun/gangrun/internal/wire"
)

// Limits for the wait until no process of earlier attempts is left.
const (
	leftoverLimit = 30 * time.Second
	leftoverEvery = 500 * time.Millisecond
)

// proveAlone makes every host of an attempt end the processes that earlier gangs have left there. It returns when no
// process of an earlier attempt of this run is left. If such a process does not end on a host, the error is an
// UnreachableError, because the attempt cannot use that host.
func proveAlone(ctx context.Context, a job.Attempt, nodes []*node, emit func(job.Event)) error {
	var one sync.Mutex
	return agents.Each(len(nodes), func(i int) error {
		agent := nodes[i].agent
		note := func(text string) {
			one.Lock()
			defer one.Unlock()
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: a.Number, Host: agent.Host, Text: text})
		}
		return awaitLeftovers(ctx, agent, a, note)
	})
}

// awaitLeftovers makes one host end the processes that earlier gangs have left there. It waits until no process of an
// earlier attempt of this run is left on that host.
func awaitLeftovers(ctx context.Context, r *agents.Agent, a job.Attempt, note func(string)) error {
	deadline := time.Now().Add(leftoverLimit)
	for reported := false; ; {
		reply, err := r.Client.Leftovers(ctx, &wire.LeftoversRequest{Gang: a.GangName()})
		if err != nil {
			return r.Failed(ctx, err)
		}
		if len(reply.Ended) > 0 {
			note(r.Host + ": " + leftover.Killed(decoded(reply.Ended)))
		}
		ours := slices.DeleteFunc(slices.Clone(reply.Living), func(l *wire.Leftover) bool { return !strings.HasPrefix(l.Gang, a.Run+"/") })
		if !reported && len(reply.Living) > 0 {
			reported = true
			text := fmt.Sprintf("%s: SIGKILL has not ended yet: %s", r.Host, leftover.Names(decoded(reply.Living)))
			if len(ours) > 0 {
				text += fmt.Sprintf("; attempt %d waits up to %s for their end, so that two attempts never write at once", a.Number, leftoverLimit)
			}
			note(text)
		}
		if len(ours) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return &agents.UnreachableError{Host: r.Host, Err: fmt.Errorf("on %s processes of an earlier attempt do not end within %s: %s", r.Host, leftoverLimit, leftover.Names(decoded(ours)))}
		}
		select {
		case <-time.After(leftoverEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// decoded returns the processes in an agent's reply.
func decoded(all []*wire.Leftover) (processes []leftover.Process) {
	for _, l := range all {
		processes = append(processes, leftover.Process{PID: int(l.Pid), Name: string(l.Name), State: l.State, Gang: l.Gang})
	}
	return processes
}
