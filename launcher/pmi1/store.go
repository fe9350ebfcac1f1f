package pmi1

// The limits of the protocol that get_maxes returns, in bytes.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// The longest values that fit into the lines that answer get and lookup_name.
const (
	maxAnswer = maxLine - len("cmd=get_result rc=0 value=\n")
	maxPort   = maxLine - len("cmd=lookup_result info=ok rc=0 port=\n")
)

// Limits for what one rank can keep in the store and in the published names. They prevent a faulty rank from filling
// the agent's memory. MPICH puts a few addresses for each rank, of less than 1 KiB each.
const (
	maxEntries = 4096
	maxBytes   = 1 << 20
)

// elsewhere is the owner of the entries that came from other hosts.
const elsewhere = -1

// Pair is one entry of the key-value store.
type Pair struct{ Key, Value string }

// entry is a value. owner is the rank that put it. fresh is true if other hosts have not received it yet.
type entry struct {
	value string
	owner int
	fresh bool
}

// usage is how much one rank has stored.
type usage struct{ entries, bytes int }

// store is the key-value store of one host.
type store struct {
	entries map[string]entry
	used    map[int]usage
	fresh   []string // keys of fresh entries, each once, in the order of their puts
	shared  bool     // other hosts have ranks, too
}

func newStore(shared bool) *store {
	return &store{entries: map[string]entry{}, used: map[int]usage{}, shared: shared}
}

// put stores a value for a rank. It returns false if the rank would store too much.
func (s *store) put(owner int, key, value string) bool {
	old, had := s.entries[key]
	use := s.used[owner]
	if had && old.owner == owner {
		use.entries--
		use.bytes -= len(key) + len(old.value)
	}
	use.entries++
	use.bytes += len(key) + len(value)
	if use.entries > maxEntries || use.bytes > maxBytes {
		return false
	}
	if had && old.owner != owner {
		s.disown(old.owner, key, old.value)
	}
	s.used[owner] = use
	s.entries[key] = entry{value, owner, s.shared}
	if s.shared && !old.fresh {
		s.fresh = append(s.fresh, key)
	}
	return true
}

// merge stores the entries that ranks of other hosts have put. It keeps an entry that this host has put but not sent
// yet, because that entry is newer.
func (s *store) merge(puts []Pair) {
	for _, p := range puts {
		old, had := s.entries[p.Key]
		if old.fresh || had && old.value == p.Value {
			continue
		}
		if had {
			s.disown(old.owner, p.Key, old.value)
		}
		s.entries[p.Key] = entry{p.Value, elsewhere, false}
	}
}

func (s *store) disown(owner int, key, value string) {
	if owner == elsewhere {
		return
	}
	use := s.used[owner]
	use.entries--
	use.bytes -= len(key) + len(value)
	s.used[owner] = use
}

// news returns the entries that other hosts have not received yet. If all is true, the entries are for a barrier of all
// ranks, after which all other hosts have them.
func (s *store) news(all bool) []Pair {
	puts := make([]Pair, 0, len(s.fresh))
	for _, key := range s.fresh {
		e := s.entries[key]
		puts = append(puts, Pair{key, e.value})
		if all {
			e.fresh = false
			s.entries[key] = e
		}
	}
	if all {
		s.fresh = s.fresh[:0]
	}
	return puts
}

// Name is a published name, as it is sent to other hosts.
type Name struct {
	ID      int64 // ID of this message, which is unique in the gang
	Service string
	Port    string // empty if the name was withdrawn
	Ask     bool   // a rank looks up the name; it gets its answer after all earlier messages have arrived
}

// names are the published names of one host's ranks.
type names map[string]entry

// publish publishes a name. It returns false if another rank has published the name, or if the rank has published too
// many names.
func (n names) publish(owner int, service, port string) bool {
	if old, had := n[service]; had && old.owner != owner {
		return false
	}
	use := usage{1, len(service) + len(port)}
	for name, e := range n {
		if e.owner == owner && name != service {
			use.entries++
			use.bytes += len(name) + len(e.value)
		}
	}
	if use.entries > maxEntries || use.bytes > maxBytes {
		return false
	}
	n[service] = entry{value: port, owner: owner}
	return true
}

// forget removes the names that a rank has published.
func (n names) forget(owner int) {
	for name, e := range n {
		if e.owner == owner {
			delete(n, name)
		}
	}
}
