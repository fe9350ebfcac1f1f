package launcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Limits of the wait for processes of earlier attempts.
const (
	leftoverLimit = 30 * time.Second
	leftoverEvery = 500 * time.Millisecond
)

// proveAlone has every host of an attempt end what earlier gangs have left there, and
// returns when no process of an earlier attempt of this run is left. A host on which one
// does not end is an UnreachableError: it can have no part in the attempt.
func proveAlone(ctx context.Context, a job.Attempt, nodes []*node, emit func(job.Event)) error {
	var one sync.Mutex
	return each(len(nodes), func(i int) error {
		agent := nodes[i].agent
		note := func(text string) {
			one.Lock()
			defer one.Unlock()
			emit(job.Event{Time: time.Now(), Kind: job.KindNote, Attempt: a.Number, Host: agent.host, Text: text})
		}
		return agent.proveAlone(ctx, a, note)
	})
}

func (r *remote) proveAlone(ctx context.Context, a job.Attempt, note func(string)) error {
	deadline := time.Now().Add(leftoverLimit)
	for told := false; ; {
		reply, err := r.client.Leftovers(ctx, &wire.LeftoversRequest{Gang: gangName(a)})
		if err != nil {
			return failed(ctx, r, err)
		}
		if len(reply.Ended) > 0 {
			note(fmt.Sprintf("%s: killed what was left of gangs whose agents and watchdogs had been killed: %s", r.host, processes(reply.Ended)))
		}
		ours := slices.DeleteFunc(slices.Clone(reply.Living), func(l *wire.Leftover) bool { return !strings.HasPrefix(l.Gang, a.Run+"/") })
		if !told && len(reply.Living) > 0 {
			told = true
			text := fmt.Sprintf("%s: SIGKILL has not ended yet: %s", r.host, processes(reply.Living))
			if len(ours) > 0 {
				text += fmt.Sprintf("; attempt %d waits up to %s for their end, so that two attempts never write at once", a.Number, leftoverLimit)
			}
			note(text)
		}
		if len(ours) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return &UnreachableError{Host: r.host, Err: fmt.Errorf("on %s processes of an earlier attempt do not end within %s: %s", r.host, leftoverLimit, processes(ours))}
		}
		select {
		case <-time.After(leftoverEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mostProcesses is how many processes a text names.
const mostProcesses = 8

// processes names processes: how many there are, and of which attempts.
func processes(all []*wire.Leftover) string {
	var names []string
	for _, l := range all[:min(len(all), mostProcesses)] {
		text := fmt.Sprintf("%d (%s", l.Pid, l.Name)
		if l.Gang != "" {
			text += " of " + l.Gang
		}
		if l.State == "D" {
			text += ", in an uninterruptible wait for a device or file system"
		}
		names = append(names, text+")")
	}
	if more := len(all) - mostProcesses; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	noun := "processes"
	if len(all) == 1 {
		noun = "process"
	}
	return fmt.Sprintf("%d %s: %s", len(all), noun, strings.Join(names, ", "))
}
