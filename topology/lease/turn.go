package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxTickets bounds how many gangs wait on a host.
const maxTickets = 4096

// Turn is the place of a gang among those that wait on a host. It has a ticket
// from the first Try until Close. Its methods may be called at the same time.
type Turn struct {
	space *Space
	watch *watch

	waiting sync.Mutex // one Wait at a time

	mu     sync.Mutex
	ticket *file   // nil without one
	last   Request // what the ticket says
	closed bool
}

// Turn returns a place on the host, without a ticket yet. The caller closes it.
func (s *Space) Turn() *Turn { return &Turn{space: s, watch: s.watch()} }

// Wait returns when GPUs were given back or a gang stopped waiting since Turn was
// called or the last Wait returned, at the latest after three seconds; with an error
// only when ctx is done. That something changed is a guess: Try tells.
func (t *Turn) Wait(ctx context.Context) error {
	t.waiting.Lock()
	defer t.waiting.Unlock()
	return t.watch.wait(ctx)
}

// Waiting says how things stand on a host for a request that was not granted.
type Waiting struct {
	Host string `json:"host"`
	// Leases are the Devices of the ticket, in its order.
	Leases []Lease `json:"leases"`
	// Ahead are the gangs with older tickets, the oldest first; Blocking the runs
	// among them that would be worse off had the request been granted.
	Ahead    []Waiter `json:"ahead,omitempty"`
	Blocking []string `json:"blocking,omitempty"`
	// Spare are the GPUs that could be taken now under the ticket rule: these or
	// any part of them.
	Spare []string `json:"spare,omitempty"`
	// Earliest is when Count of the GPUs can be idle at the earliest, were the gang
	// alone. It is the NotBefore of its tickets elsewhere.
	Earliest time.Time `json:"earliest"`
	// Warnings say what is wrong with files that were passed over.
	Warnings []string `json:"warnings,omitempty"`
}

// Try takes the GPUs that r takes, all of them or none, if nobody has one and the
// ticket rule allows it; else it says what is in the way. It never waits for a GPU:
// exactly one of the three results is not nil. Not before the deadline of ctx, and
// 10 s, passed does it give up on others that decide on the same host. The
// ticket is written anew where r changes it; Run and Since must stay.
func (t *Turn) Try(ctx context.Context, r Request) (*Held, *Waiting, error) {
	if err := r.validate(); err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, errors.New("the turn is closed")
	}
	if t.ticket != nil && (t.last.Run != r.Run || !t.last.Since.Equal(r.Since)) {
		return nil, nil, fmt.Errorf("a turn of run %q cannot become one of run %q, or get another age", t.last.Run, r.Run)
	}
	var held *Held
	var waiting *Waiting
	err := t.space.ordered(ctx, func() (err error) {
		if err := t.write(r); err != nil {
			return err
		}
		held, waiting, err = t.space.try(r)
		return err
	})
	if err != nil {
		if held != nil {
			err = errors.Join(err, held.Release())
		}
		return nil, nil, fmt.Errorf("cannot take GPUs of %s: %w", t.space.hostName(), err)
	}
	return held, waiting, nil
}

// write makes the turn's ticket say what r says. The caller is within ordered.
func (t *Turn) write(r Request) error {
	w := Waiter{Owner: process(t.space.host, r.User), Ticket: r.Ticket}
	w.Owner.Run, w.Owner.Since, w.Owner.Command, w.Owner.Ranks = r.Run, r.Since, clip(r.Command), r.Ranks
	if t.ticket != nil {
		if same, err := t.ticket.named(); err != nil {
			return err
		} else if !same {
			t.ticket.drop() // somebody removed it: take another
			t.ticket = nil
		}
	}
	if t.ticket == nil {
		f, err := t.space.void()
		if err != nil {
			return err
		}
		if err := f.write(w); err != nil {
			f.drop()
			return err
		}
		t.ticket, t.last = f, r
		return nil
	}
	if alike(t.last, r) {
		return nil
	}
	if err := t.ticket.write(w); err != nil {
		t.ticket.drop() // no ticket is better than a wrong one
		t.ticket = nil
		return err
	}
	t.last = r
	return nil
}

func alike(a, b Request) bool {
	return slices.Equal(a.Devices, b.Devices) && a.Count == b.Count && a.Limit == b.Limit && a.NotBefore.Equal(b.NotBefore) &&
		slices.Equal(a.Ranks, b.Ranks) && a.User == b.User && a.Command == b.Command
}

// void returns the file of a void ticket, locked.
func (s *Space) void() (*file, error) {
	var barred error
	for n := range maxTickets {
		f, err := lock(s.path(kindTicket, strconv.Itoa(n)), os.O_RDWR)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errHeld) {
			barred = err
			if n >= 64 {
				break // not the file, but the directory
			}
		}
	}
	return nil, fmt.Errorf("no ticket is left in %q: %w", s.dir, errors.Join(barred, errHeld))
}

// try decides on r. The caller is within ordered.
func (s *Space) try(r Request) (*Held, *Waiting, error) {
	sc, err := s.look()
	if err != nil {
		return nil, nil, err
	}
	v := sc.view(s)
	allowed := len(r.Take) > 0 && len(v.against(r.Ticket, r.Take)) == 0
	for _, d := range r.Take {
		if _, held := v.held[v.key(d)]; held {
			allowed = false
		}
	}
	if allowed {
		held, err := s.take(r)
		if held != nil || !errors.Is(err, errHeld) {
			return held, nil, err
		}
		// Somebody locks files without asking for the order: as it is now.
		if sc, err = s.look(); err != nil {
			return nil, nil, err
		}
		v = sc.view(s)
	}
	return nil, s.waiting(r, sc, v), nil
}

func (s *Space) waiting(r Request, sc scene, v view) *Waiting {
	w := &Waiting{Host: s.host, Spare: v.spare(r.Ticket), Warnings: sc.warnings}
	here := r.Ticket
	here.NotBefore = time.Time{}
	w.Earliest = v.earliest(here)
	for _, d := range r.Devices {
		l := Lease{Device: d, State: StateFree}
		if i := slices.IndexFunc(sc.leases, func(l Lease) bool { return l.file == v.key(d) }); i >= 0 {
			l = sc.leases[i]
			l.Device = d // a long one is cut in the file's name
		}
		w.Leases = append(w.Leases, l)
	}
	for _, o := range sc.waiters {
		if o.Ticket.Run != r.Run && o.Ticket.before(r.Ticket) {
			w.Ahead = append(w.Ahead, o)
		}
	}
	for _, t := range v.against(r.Ticket, r.Take) {
		w.Blocking = append(w.Blocking, t.Run)
	}
	return w
}

// take locks the GPUs that r takes and writes who has them, all or none.
func (s *Space) take(r Request) (*Held, error) {
	o := process(s.host, r.User)
	o.Run, o.Ranks, o.Command, o.Since = r.Run, r.Ranks, clip(r.Command), s.clock().UTC()
	if r.Limit > 0 {
		o.Until = o.Since.Add(r.Limit)
	}
	h := &Held{devices: slices.Clone(r.Take), owner: o}
	for _, d := range r.Take {
		f, err := lock(s.path(kindGPU, d), os.O_RDWR)
		if err == nil {
			h.files = append(h.files, f)
			err = f.write(leaseRecord{Device: d, Owner: o})
		}
		if err != nil {
			return nil, errors.Join(err, h.drop())
		}
	}
	h.watch(s.pulse)
	return h, nil
}

// Close takes the ticket back. What was granted stays. A second call does nothing.
// No Wait may be under way.
func (t *Turn) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	err := t.watch.close()
	if t.ticket != nil {
		err = errors.Join(err, t.ticket.Truncate(0), t.ticket.drop())
	}
	return err
}

// hostName names the host for people.
func (s *Space) hostName() string {
	if s.host == "" {
		return "this host"
	}
	return strconv.Quote(s.host)
}

// clip shortens a command for the record.
func clip(command string) string {
	const most = 200
	if runes := []rune(command); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return command
}
