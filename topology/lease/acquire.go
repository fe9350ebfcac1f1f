package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Grant is the GPUs that one host has granted.
type Grant interface {
	// Release gives the GPUs back.
	Release() error
}

// Member is one host of a gang, as the gang's controller sees it: a *Turn on this
// machine, or an agent that has one.
type Member[G Grant] interface {
	// Try is Turn.Try.
	Try(ctx context.Context, r Request) (G, *Waiting, error)
	// Wait is Turn.Wait.
	Wait(ctx context.Context) error
}

// The pauses after a round in which some hosts granted and others did not.
const (
	firstPause = 4 * time.Millisecond
	lastPause  = 256 * time.Millisecond
)

// Acquire takes a gang's GPUs on all of its hosts, or none. It asks plan what to
// request of each member, by its index, and plan gets the state of each member of a
// moment ago; the first time it gets nil, and its requests take nothing. Requests
// without Take only keep the ticket. When every member that is asked for GPUs has
// granted them Acquire returns the grants, with a zero one where none was asked
// for. Else it gives back those that it got, waits for a change on any member, and
// asks again: at the latest every few seconds, so that plan can relax what it wants
// as time goes by, and at the moment again that plan names, where it names one.
//
// It ends with the error of plan or of a member, or when ctx is done; then nothing
// is held. Tickets stay until the caller closes the members' turns.
func Acquire[G Grant](ctx context.Context, members []Member[G], plan func([]*Waiting) (requests []Request, again time.Time, err error)) ([]G, error) {
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

// tryAll asks all members at once. If a member that is asked for GPUs fails or does not
// grant them, tryAll gives back what the others granted.
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

// waitAny returns when the Wait of one member has, or at the moment again where
// that is not zero, and all others have ended.
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
