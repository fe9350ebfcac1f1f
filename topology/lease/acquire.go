package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Grant represents the GPUs that one host has granted.
type Grant interface {
	// Release returns the GPUs, so that others can take them.
	Release() error
}

// Member is one host of a gang. For this machine, it is a *Turn. For another host, it is a client of the host's
// agent, which has a Turn.
type Member[G Grant] interface {
	// Try does what Turn.Try does.
	Try(ctx context.Context, r Request) (G, *Waiting, error)
	// Wait does what Turn.Wait does.
	Wait(ctx context.Context) error
}

// These are the pauses after a round in which some hosts granted their requests and others did not.
const (
	firstPause = 4 * time.Millisecond
	lastPause  = 256 * time.Millisecond
)

// Acquire takes GPUs for a gang on all of its hosts, or takes none.
//
// It calls plan to get the requests, one for each member. In the first call, the argument of plan is nil, and
// no request that plan returns may have a Take. In later calls, the argument has the last answer of each
// member. A request without a Take only keeps the ticket.
//
// Acquire sends the requests to the members. If a request has a Take, and every request with a Take is granted,
// Acquire returns the grants. For a request without a Take, the grant is zero. Otherwise Acquire releases the grants,
// waits until something changes on any member, and calls plan again. It also calls plan again every few seconds, so
// that plan can ask for less as time passes. plan also returns a time, next. If next is not zero, Acquire calls plan at
// that time, too.
//
// Acquire returns an error if plan or a member returns an error, or if ctx is done. It then holds no GPUs. The
// tickets stay until the caller closes the Turns of the members.
func Acquire[G Grant](ctx context.Context, members []Member[G], plan func([]*Waiting) (requests []Request, next time.Time, err error)) ([]G, error) {
	requests, _, err := plan(nil)
	if err != nil {
		return nil, err
	}
	var again time.Time
	for pause := firstPause; ; {
		if len(requests) != len(members) {
			return nil, fmt.Errorf("%d requests for %d hosts", len(requests), len(members))
		}
		looks := make([]Request, len(members))
		for i, r := range requests {
			r.Take = nil
			looks[i] = r
		}
		_, states, _, err := tryAll(ctx, members, looks)
		if err != nil {
			return nil, err
		}
		if requests, again, err = plan(states); err != nil {
			return nil, err
		}
		if len(requests) != len(members) {
			return nil, fmt.Errorf("%d requests for %d hosts", len(requests), len(members))
		}
		asked := 0
		for _, r := range requests {
			if len(r.Take) > 0 {
				asked++
			}
		}
		grants, _, granted, err := tryAll(ctx, members, requests)
		if err == nil && granted == asked && asked > 0 {
			return grants, nil
		}
		if err != nil {
			return nil, err
		}
		if err := waitAny(ctx, members, again); err != nil {
			return nil, err
		}
		if granted == 0 {
			pause = firstPause
			continue
		}
		if err := sleep(ctx, jitter(pause)); err != nil {
			return nil, err
		}
		pause = min(2*pause, lastPause)
	}
}

// tryAll sends all members their requests at the same time. If a member that is asked for
// GPUs fails or does not grant them, tryAll releases what the others granted.
func tryAll[G Grant](ctx context.Context, members []Member[G], requests []Request) (grants []G, states []*Waiting, granted int, err error) {
	grants, states = make([]G, len(members)), make([]*Waiting, len(members))
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { grants[i], states[i], errs[i] = m.Try(ctx, requests[i]) })
	}
	all.Wait()
	short := false
	for i := range members {
		switch {
		case errs[i] != nil:
		case states[i] == nil:
			granted++
		case len(requests[i].Take) > 0:
			short = true
		}
	}
	if err = errors.Join(errs...); err == nil && !short {
		return grants, states, granted, nil
	}
	for i := range members {
		if errs[i] == nil && states[i] == nil {
			all.Go(func() { errs[i] = grants[i].Release() })
		}
	}
	all.Wait()
	return nil, states, granted, errors.Join(errs...)
}

// waitAny calls Wait of all members. It ends these calls as soon as one of them returns, or
// at the time again if that is not zero, and returns when all have ended.
func waitAny[G Grant](ctx context.Context, members []Member[G], again time.Time) error {
	any, cancel := context.WithCancel(ctx)
	defer cancel()
	if !again.IsZero() {
		any, cancel = context.WithDeadline(any, again)
		defer cancel()
	}
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			if err := m.Wait(any); err != nil && any.Err() == nil {
				errs[i] = err
			}
			cancel()
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}
