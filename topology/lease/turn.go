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

	"golang.org/x/sys/unix"
)

// maxTickets is the maximum number of gangs that can wait on a host.
const maxTickets = 4096

// Turn is a gang's place in the queue for the GPUs of a host. It has a ticket from the first
// call of Try until Close. Its methods may be called concurrently.
type Turn struct {
	space *Space
	watch *watch

	waiting sync.Mutex // one Wait at a time

	mu     sync.Mutex
	ticket *file   // nil if the turn has no ticket
	last   Request // the request for which the ticket was written
	closed bool
}

// Turn returns a Turn on the host. It has no ticket yet. The caller must close it.
func (s *Space) Turn() *Turn { return &Turn{space: s, watch: s.watch()} }

// Wait waits until GPUs are released or a gang stops waiting. It returns at once if that has happened since the
// last Wait returned or, in the first call, since the Turn was created. It also returns after three seconds, so
// the caller must call Try to find out whether it now gets the GPUs. It returns an error only if ctx is done.
func (t *Turn) Wait(ctx context.Context) error {
	t.waiting.Lock()
	defer t.waiting.Unlock()
	return t.watch.wait(ctx)
}

// Waiting is the state of a host for a request that was not granted.
type Waiting struct {
	Host string `json:"host"`
	// Leases has the Devices of the ticket, in the order of the ticket, and after them all other GPUs of the
	// host that were ever leased.
	Leases []Lease `json:"leases"`
	// Ahead has the gangs with older tickets, the oldest first. Blocking has the runs of those gangs from which
	// the request would have taken GPUs. That is why it was refused.
	Ahead    []Waiter `json:"ahead,omitempty"`
	Blocking []string `json:"blocking,omitempty"`
	// Spare has the GPUs that the gang may take now according to the ticket rule. It may take all or some of
	// them.
	Spare []string `json:"spare,omitempty"`
	// Ready has the earliest times at which the Devices of the ticket can be idle if no other gang waits. There
	// is one time for each device, and the times are in ascending order. See Earliest.
	Ready []time.Time `json:"ready,omitempty"`
	// Warnings describe files that were ignored, and why.
	Warnings []string `json:"warnings,omitempty"`
}

// Try takes all GPUs of r.Take if nobody holds any of them and the ticket rule allows it. Otherwise it takes
// none and returns a Waiting that shows why. Of the three results, exactly one is not nil.
//
// Try does not wait for GPUs. But it waits while other processes are taking GPUs of the same host, for at most
// 30 s or until ctx is done. If r.Ticket differs from that of the last call, Try updates the ticket. Run and
// Since must stay the same.
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
	err := t.space.ordered(ctx, func(ctx context.Context) (err error) {
		if err := t.write(r); err != nil {
			return err
		}
		held, waiting, err = t.space.try(ctx, r)
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

// write writes the ticket of r to the turn's file. The caller must hold the order lock.
func (t *Turn) write(r Request) error {
	w := Waiter{Owner: process(t.space.host, r.User), Ticket: r.Ticket}
	w.Owner.Run, w.Owner.Since, w.Owner.Command, w.Owner.Ranks = r.Run, r.Since, clip(r.Command), r.Ranks
	if t.ticket != nil {
		if same, err := t.ticket.named(); err != nil {
			return err
		} else if !same {
			t.ticket.drop() // another process removed the file: take another one
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
	return slices.Equal(a.Devices, b.Devices) && a.Count == b.Count && a.Least == b.Least && a.Limit == b.Limit && a.NotBefore.Equal(b.NotBefore) &&
		slices.Equal(a.Ranks, b.Ranks) && a.User == b.User && a.Command == b.Command
}

// void locks and returns the file of a void ticket that belongs to this user. It does not use files of other
// users, because a ticket is valid only in a file that belongs to the user whom it names.
func (s *Space) void() (*file, error) {
	for n := range maxTickets {
		path := s.path(kindTicket, strconv.Itoa(n))
		f, err := lock(path, os.O_RDWR)
		switch {
		case err == nil:
			info, err := f.Stat()
			if err == nil && owner(info) == os.Geteuid() {
				return f, nil
			}
			f.drop()
		case errors.Is(err, errHeld):
		default:
			_, gone := os.Lstat(path)
			if gone != nil || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) { // the error does not concern the file
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("no ticket is left in %q: there are %d, all of them of gangs that wait or of other users; have root remove those that nobody has locked", s.dir, maxTickets)
}

// try decides about r. The caller must hold the order lock.
func (s *Space) try(ctx context.Context, r Request) (*Held, *Waiting, error) {
	sc, err := s.look(ctx)
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
		// A process locked a file without the order lock. Look at the state again.
		if sc, err = s.look(ctx); err != nil {
			return nil, nil, err
		}
		v = sc.view(s)
	}
	w := s.waiting(r, sc, v)
	return nil, w, ctx.Err()
}

func (s *Space) waiting(r Request, sc scene, v view) *Waiting {
	w := &Waiting{Host: s.host, Spare: v.spare(r.Ticket), Ready: v.ready(r.Ticket), Warnings: sc.warnings}
	named := make(map[string]bool)
	for _, d := range r.Devices {
		named[v.key(d)] = true
		l := Lease{Device: d, State: StateFree}
		if i := slices.IndexFunc(sc.leases, func(l Lease) bool { return l.file == v.key(d) }); i >= 0 {
			l = sc.leases[i]
			l.Device = d // the file's name may hold only a part of a long one
		}
		w.Leases = append(w.Leases, l)
	}
	for _, l := range sc.leases {
		if !named[l.file] && l.file != "" {
			w.Leases = append(w.Leases, l)
		}
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

// take locks the files of all GPUs of r.Take, and writes records of their holder. If it cannot lock all of
// them, it takes none.
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

// Close withdraws the ticket. GPUs that were granted stay leased. Wait must not run at the same time. A second
// call of Close does nothing.
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

// hostName returns the host's name for messages.
func (s *Space) hostName() string {
	if s.host == "" {
		return "this host"
	}
	return strconv.Quote(s.host)
}

// clip shortens a command for a record.
func clip(command string) string {
	const most = 200
	if runes := []rune(command); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return command
}
