package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/watchdog"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/topology/lease"
)

// leases has the GPUs that this agent holds for gangs, and the places of gangs in the queue for GPUs. They last
// as long as this agent. So on another machine than the controller's, they stay when the controller ends, as the ranks
// do.
type leases struct {
	keeper *watchdog.Keeper // nil if there is no watchdog

	mu    sync.Mutex
	turns map[string]*turn
}

// turn is the place of one gang in the queue, and the lease of the gang.
type turn struct {
	wait *lease.Turn
	held *lease.Held // nil until the lease is granted
	left bool        // the gang has left the queue, and wait is closed
}

// LeaseTry implements wire.AgentServer.
func (s *server) LeaseTry(ctx context.Context, r *wire.LeaseTryRequest) (*wire.LeaseTryReply, error) {
	var request lease.Request
	if err := json.Unmarshal(r.Request, &request); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	_, env := s.settings.get()
	t, err := s.leases.turn(r, environ.Lookup(env, lease.Env))
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	held, waiting, err := t.wait.Try(ctx, request)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), status.Error(codes.Aborted, err.Error()))
	}
	if held != nil && ctx.Err() != nil { // the controller no longer waits for the lease
		return nil, errors.Join(ctx.Err(), held.Release())
	}
	if held != nil {
		if err := s.leases.keeper.Keep(r.Turn, held.Descriptors()); err != nil {
			return nil, status.Error(codes.Aborted, errors.Join(err, held.Release()).Error())
		}
		s.leases.mu.Lock()
		before := t.held
		t.held = held
		s.leases.mu.Unlock()
		if before != nil {
			err = before.Release()
		}
		return &wire.LeaseTryReply{}, err
	}
	data, err := json.Marshal(waiting)
	return &wire.LeaseTryReply{Waiting: data}, err
}

// turn returns the turn of a gang. If there is none, it makes one in the directory dir.
func (l *leases) turn(r *wire.LeaseTryRequest, dir string) (*turn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.turns[r.Turn]; t != nil {
		return t, nil
	}
	space, err := lease.Open(dir, r.Space)
	if err != nil {
		return nil, err
	}
	t := &turn{wait: space.Turn()}
	if l.turns == nil {
		l.turns = map[string]*turn{}
	}
	l.turns[r.Turn] = t
	return t, nil
}

// find returns the turn with that name and its lease. If name is empty, it returns the turn and the lease of a gang
// that holds a lease.
func (l *leases) find(name string) (*turn, *lease.Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, t := range l.turns {
		if key == name || name == "" && t.held != nil {
			return t, t.held
		}
	}
	return nil, nil
}

// LeaseWait implements wire.AgentServer.
func (s *server) LeaseWait(ctx context.Context, r *wire.LeaseRequest) (*wire.LeaseReply, error) {
	t, _ := s.leases.find(r.Turn)
	if t == nil {
		return nil, status.Errorf(codes.NotFound, "no gang waits as %q", r.Turn)
	}
	return &wire.LeaseReply{}, t.wait.Wait(ctx)
}

// LeaseLeave implements wire.AgentServer.
func (s *server) LeaseLeave(_ context.Context, r *wire.LeaseRequest) (*wire.LeaseReply, error) {
	s.leases.mu.Lock()
	t := s.leases.turns[r.Turn]
	if t != nil {
		if t.left = true; t.held == nil {
			delete(s.leases.turns, r.Turn)
		}
	}
	s.leases.mu.Unlock()
	if t == nil {
		return &wire.LeaseReply{}, nil
	}
	return &wire.LeaseReply{}, t.wait.Close()
}

// LeaseLost implements wire.AgentServer. It returns when the lease of a gang is lost. The request names the gang's
// place in the queue (turn). Only a controller that has taken the run over does not know the place, and leaves it out.
// Then the request is about the lease of the gang that this controller has adopted.
func (s *server) LeaseLost(ctx context.Context, r *wire.LeaseRequest) (*wire.LeaseLostReply, error) {
	_, held := s.leases.find(r.Turn)
	if held == nil {
		return &wire.LeaseLostReply{}, nil
	}
	select {
	case <-held.Done():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	reply := &wire.LeaseLostReply{}
	if err := held.Err(); err != nil {
		reply.Why = []byte(err.Error())
	}
	return reply, nil
}

// LeaseRelease implements wire.AgentServer. A gang that has not left the queue keeps its place.
func (s *server) LeaseRelease(_ context.Context, r *wire.LeaseRequest) (*wire.LeaseReply, error) {
	s.leases.mu.Lock()
	t := s.leases.turns[r.Turn]
	var held *lease.Held
	if t != nil {
		if held, t.held = t.held, nil; t.left {
			delete(s.leases.turns, r.Turn)
		}
	}
	s.leases.mu.Unlock()
	if held == nil {
		return &wire.LeaseReply{}, nil
	}
	err := held.Release()
	s.leases.keeper.Drop(r.Turn)
	return &wire.LeaseReply{}, err
}

// close releases every lease and leaves every queue.
func (l *leases) close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.turns {
		err = errors.Join(err, t.wait.Close())
		if t.held != nil {
			err = errors.Join(err, t.held.Release())
		}
	}
	l.turns = nil
	return err
}
