// Package hostclean removes what dead runs have left on hosts, through an agent on each host.
package hostclean

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/controller/userenv"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/topology/inventory"
)

// limit limits the time of an agent. The agent waits 10 s for processes, and works on containers and images for at most
// a minute.
const limit = 2 * time.Minute

// Clean starts an agent on each host of list, on all hosts at the same time. Each agent removes what dead
// runs have left on its host. It also removes each image that gangrun has brought to the host, if no container uses it
// and its last use was at least minAge ago. If minAge is negative, it keeps all images. Clean calls ask to show a
// question to the user, for example for a password, and calls ask with "" to remove the question. all has an entry
// for each host. If a host could not be reached, its entry has a Problem.
func Clean(ctx context.Context, list inventory.List, minAge time.Duration, ask func(question string)) (all []job.Cleaned, err error) {
	spec := job.Default()
	dialer, err := hosts.NewDialer(list, spec, hosts.DialOptions{Ask: ask, Note: func(string, string) {}, Started: func(string, job.Agent) {}})
	if err != nil {
		return nil, err
	}
	pool := agents.New(agents.Options{
		Dialer: dialer, Env: userenv.ForRanks(os.Environ()), HostTimeout: time.Duration(spec.HostTimeout), OrphanGrace: time.Duration(spec.OrphanGrace),
	})
	all = make([]job.Cleaned, len(list.Hosts))
	_ = agents.Each(len(all), func(i int) error {
		name := list.Hosts[i].Name
		one, err := clean(ctx, pool, name, minAge)
		if err != nil {
			one = job.Cleaned{Host: name}
			one.Problem, one.Hint = hosts.UnreachedText([]agents.Unreached{{Host: name, Err: err}})
		}
		all[i] = one
		return nil
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return all, errors.Join(err, pool.Close(), dialer.Close(context.WithoutCancel(ctx)))
}

// clean is Clean for one host.
func clean(ctx context.Context, pool *agents.Pool, host string, minAge time.Duration) (one job.Cleaned, err error) {
	a, err := pool.Get(ctx, host)
	if err != nil {
		return one, err
	}
	asking, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the agent on %s has not cleaned up within %s", host, limit))
	defer cancel()
	reply, err := a.Client.Clean(asking, &wire.CleanRequest{UnusedMs: minAge.Milliseconds()})
	if err != nil {
		return one, a.Failed(ctx, agents.Cause(asking, err))
	}
	return one, exact.Unmarshal(reply.Cleaned, &one)
}
