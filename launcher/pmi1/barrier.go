package pmi1

import "slices"

// maxIn limits the number of barriers in which one rank waits. With PMI-1.1, a rank waits in one barrier at most. With
// PMI-1.2, each thread may wait in a barrier with its own tag.
const maxIn = 64

// barrier is the barrier of a group that has ranks on this host.
type barrier struct {
	group  group
	here   []*rank
	others bool // the group has ranks on other hosts, too
	// came has the arrivals of each rank, in order. If a rank has several arrivals, all but the first are for later
	// barriers of the group.
	came map[*rank][]waiter
	// entered is true if all ranks of the group on this host have arrived and Enter was called. held then has the
	// arrivals that wait for Release.
	entered bool
	held    []waiter
}

// waiter is the arrival of a rank, with what is needed to answer the rank.
type waiter struct {
	conn   *conn // nil if the arrival was answered already
	tag    int
	tagged bool
}

// entering is a call of Config.Enter that must be made.
type entering struct {
	group string
	puts  []Pair
}

// arrive records that a rank has entered a barrier, and returns the waiters to answer. ok is false if the rank is not
// in the group, or waits in too many barriers. s.mu is held.
func (s *Server) arrive(r *rank, g group, w waiter) (free []waiter, ok bool) {
	b := s.barriers[g.name]
	if b == nil {
		b = &barrier{group: g, came: map[*rank][]waiter{}}
		b.here, b.others = s.locals(g)
	}
	if r.in == maxIn || !b.has(r) {
		return nil, false
	}
	s.barriers[g.name] = b
	b.came[r] = append(b.came[r], w)
	r.in++
	r.state.Waiting = true
	return s.meet(b), true
}

func (b *barrier) has(r *rank) bool {
	for _, one := range b.here {
		if one == r {
			return true
		}
	}
	return false
}

// meet completes barriers of a group as far as possible, and returns the waiters to answer.
// s.mu is held.
func (s *Server) meet(b *barrier) (free []waiter) {
	for !b.entered && len(b.came) == len(b.here) {
		var all []waiter
		for _, r := range b.here {
			all = append(all, b.came[r][0])
			if b.came[r] = b.came[r][1:]; len(b.came[r]) == 0 {
				delete(b.came, r)
			}
		}
		if b.others {
			b.entered, b.held = true, all
			s.entries = append(s.entries, entering{b.group.name, s.store.news(b.group.world)})
		} else {
			free = append(free, all...)
		}
	}
	if !b.entered && len(b.came) == 0 {
		delete(s.barriers, b.group.name)
	}
	return free
}

// leave removes the arrivals of a connection that has ended. If other hosts know about an arrival, it still counts, but
// is not answered. s.mu is held.
func (s *Server) leave(r *rank, c *conn) {
	ours := func(w waiter) bool { return w.conn == c }
	for name, b := range s.barriers {
		b.held = slices.DeleteFunc(b.held, ours)
		if kept := slices.DeleteFunc(b.came[r], ours); len(kept) > 0 {
			b.came[r] = kept
		} else {
			delete(b.came, r)
		}
		if !b.entered && len(b.came) == 0 {
			delete(s.barriers, name)
		}
	}
	r.in, r.state.Waiting = 0, false
}

// Release stores the entries that the ranks of all hosts have put, and releases the ranks of
// this host that wait in a barrier of the group.
func (s *Server) Release(name string, entries []Pair) {
	s.mu.Lock()
	s.store.merge(entries)
	var free []waiter
	g, err := parseGroup(name, s.config.Size)
	if b := s.barriers[g.name]; err == nil && b != nil && b.entered {
		free, b.entered, b.held = b.held, false, nil
		free = append(free, s.meet(b)...)
	}
	changed := s.release(free, g.world)
	s.mu.Unlock()
	s.changed(changed...)
	s.callEnter()
}

// Part releases one rank from a barrier of all ranks, although not all ranks have arrived. The other ranks stay
// in the barrier until all of them have arrived. Part returns false if the rank does not wait in the barrier.
func (s *Server) Part(number int) bool {
	s.mu.Lock()
	r, b := s.ranks[number], s.barriers[""]
	if r == nil || r.conn == nil || b == nil {
		s.mu.Unlock()
		return false
	}
	arrivals := slices.Concat(b.held, b.came[r])
	i := slices.IndexFunc(arrivals, func(w waiter) bool { return w.conn == r.conn })
	if i < 0 {
		s.mu.Unlock()
		return false
	}
	changed := s.release(arrivals[i:i+1], true)
	if i < len(b.held) {
		b.held[i].conn = nil
	} else {
		b.came[r][i-len(b.held)].conn = nil
	}
	s.mu.Unlock()
	s.changed(changed...)
	return true
}

// release answers waiters and returns the ranks that no longer wait. world is true if they wait in a barrier of all
// ranks. s.mu is held.
func (s *Server) release(free []waiter, world bool) (changed []*rank) {
	for _, w := range free {
		if w.conn == nil {
			continue
		}
		r := w.conn.rank
		w.conn.answerLater(w)
		r.state.Passed = r.state.Passed || world
		if r.in--; r.in == 0 {
			r.state.Waiting = false
			changed = append(changed, r)
		}
	}
	return changed
}

// callEnter makes the pending calls of Config.Enter, in order. s.mu is not held.
func (s *Server) callEnter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calling {
		return // the goroutine that runs this loop makes our calls, too
	}
	s.calling = true
	for len(s.entries) > 0 {
		next := s.entries[0]
		s.entries = s.entries[1:]
		s.mu.Unlock()
		if s.config.Enter != nil {
			s.config.Enter(next.group, next.puts)
		}
		s.mu.Lock()
	}
	s.calling = false
}
