package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/topology/lease"
)

// leaseLimit limits the time for telling an agent to release a lease or a place in its queue.
const leaseLimit = 3 * time.Second

// Turn is a gang's place in the queue for the GPUs of a host. The host's agent keeps the queue.
type Turn struct {
	l                 *Launcher
	host, space, name string
	granted           bool // the caller has the lease, and must release it
}

// Turn returns a place in the queue of a host. name distinguishes it from other places of this Launcher. space
// is the name of the host if it is a simulated host, and otherwise empty. The caller must close the Turn.
func (l *Launcher) Turn(host, space, name string) *Turn {
	return &Turn{l: l, host: host, space: space, name: name}
}

func (t *Turn) request() *wire.LeaseRequest { return &wire.LeaseRequest{Turn: t.name} }

// Try calls lease.Turn.Try on the host's agent.
func (t *Turn) Try(ctx context.Context, r lease.Request) (*Grant, *lease.Waiting, error) {
	a, err := t.l.pool.Get(ctx, t.host)
	if err != nil {
		return nil, nil, err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, nil, err
	}
	reply, err := a.Client.LeaseTry(ctx, &wire.LeaseTryRequest{Turn: t.name, Space: t.space, Request: data})
	if err != nil {
		_ = t.free(a) // the agent may have granted the lease although the call failed
		return nil, nil, a.Failed(ctx, err)
	}
	if len(reply.Waiting) > 0 {
		var w lease.Waiting
		return nil, &w, json.Unmarshal(reply.Waiting, &w)
	}
	t.granted = true
	return newGrant(t, a), nil, nil
}

// Wait calls lease.Turn.Wait on the host's agent.
func (t *Turn) Wait(ctx context.Context) error {
	a, err := t.l.pool.Get(ctx, t.host)
	if err != nil {
		return err
	}
	if _, err = a.Client.LeaseWait(ctx, t.request()); err != nil {
		return a.Failed(ctx, err)
	}
	return nil
}

// Close gives up the place. It does not release a lease that was granted. It does nothing if the agent is gone,
// because the place in the queue has ended with the agent.
func (t *Turn) Close() error {
	a := t.l.pool.Current(t.host)
	if a == nil {
		return nil
	}
	var err error
	if !t.granted { // the agent may have granted the lease, and its answer may have been lost
		err = t.free(a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseLimit)
	defer cancel()
	_, left := a.Client.LeaseLeave(ctx, t.request())
	return errors.Join(err, left)
}

func (t *Turn) free(a *agents.Agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaseLimit)
	defer cancel()
	_, err := a.Client.LeaseRelease(ctx, t.request())
	return err
}

// Grant is a lease that the agent of a host holds until Release is called, or until the agent and its watchdog have
// ended.
type Grant struct {
	turn  *Turn
	agent *agents.Agent // nil if the lease was granted to an earlier controller
	stop  context.CancelFunc
	done  chan struct{}

	mu  sync.Mutex
	err error
}

func newGrant(t *Turn, a *agents.Agent) *Grant {
	ctx, cancel := context.WithCancel(t.l.life)
	g := &Grant{turn: t, agent: a, stop: cancel, done: make(chan struct{})}
	go func() { // returns when the lease is lost or released
		defer close(g.done)
		if !g.watch(ctx, a) {
			<-ctx.Done()
		}
	}()
	return g
}

// Adopted returns the lease that the agent of a host holds for a gang that an earlier
// controller has started. Its Release only stops watching the lease: the agent gives the GPUs
// back when it ends.
func (l *Launcher) Adopted(host string) *Grant {
	ctx, cancel := context.WithCancel(l.life)
	g := &Grant{turn: &Turn{l: l, host: host}, stop: cancel, done: make(chan struct{})}
	go func() { // returns when the lease is lost or released
		defer close(g.done)
		if a, err := l.pool.Get(ctx, host); err != nil || !a.Link.Held || !g.watch(ctx, a) {
			<-ctx.Done()
		}
	}()
	return g
}

// watch waits until the lease is lost, and then returns true. It returns false if the lease was released, or if the
// agent is lost. The stream of the gang reports a lost agent.
func (g *Grant) watch(ctx context.Context, a *agents.Agent) bool {
	reply, err := a.Client.LeaseLost(ctx, g.turn.request())
	if err != nil || len(reply.Why) == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = fmt.Errorf("on %s: %s", g.turn.host, reply.Why)
	return true
}

// Done returns a channel that is closed when the lease is lost or released.
func (g *Grant) Done() <-chan struct{} { return g.done }

// Err returns why the lease was lost. It returns nil if the lease was not lost.
func (g *Grant) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Release gives the GPUs back. If the agent does not answer, the GPUs are given back when the agent ends.
func (g *Grant) Release() error {
	g.turn.granted = false
	var err error
	if g.agent != nil {
		err = g.turn.free(g.agent)
	}
	g.stop()
	<-g.done
	return err
}
