package inventory

import (
	"slices"
	"strings"
)

// openMPI reads a hostfile as Open MPI 4 does. Each line has [USER@]HOST [slots=N] [max_slots=N]
// [username=NAME]. A further line of a host without slots= adds one slot. A further line with slots= is an
// error.
func openMPI(name string, text []byte) *collector {
	c := collect(name, OpenMPI)
	most := map[string]int{}
	hostLines(text, func(line int, word string, words []pair) {
		if c.enough() {
			return
		}
		if word[0] == '^' {
			c.bad(line, faultf("leave the host out instead", "%s leaves a host out, which is not supported", quote(word)))
			return
		}
		user, text, _, _, _ := apart(word)
		if text != word && user == "" {
			c.bad(line, faultf("write USER@HOST", "%s has no user before the @", quote(word)))
			return
		}
		host, bad := hostName(text)
		var fields openMPILine
		if bad == nil {
			fields, bad = openMPIWords(user, words)
			user = fields.user
		}
		slots, limit := fields.slots, fields.most
		if bad == nil && user != "" {
			bad = userName(user)
		}
		if bad != nil {
			c.bad(line, bad)
			return
		}
		c.stated = append(c.stated, Line{Host: host, User: user, Slots: slots})
		h, isNew := c.host(line, host)
		switch {
		case h == nil:
			return
		case isNew && slots == 0 && limit > 0:
			slots = limit // as Open MPI does
			c.count(line, h, limit, true)
		case isNew:
			c.count(line, h, max(slots, 1), slots > 0)
		case slots > 0:
			c.bad(line, faultf("write one line for each host, with all its slots", "the slots of %s are stated again; it stands on line %d", quote(host), c.lines[c.index[strings.ToLower(host)]]))
			return
		default:
			c.count(line, h, 1, true)
		}
		if limit > 0 {
			most[host] = limit
		}
		if m := most[host]; m > 0 && h.Slots > m {
			c.bad(line, faultf("state no more slots than max_slots", "host %s has %d slots, but max_slots=%d", quote(host), h.Slots, m))
		} else if m > h.Slots {
			c.note(line, "max_slots changes nothing where slots are stated: gangrun starts no more ranks on a host than it has slots")
		}
		c.user(line, host, user)
	})
	return c
}

// openMPILine is what a line states about a host. A number is 0 if the line does not state it.
type openMPILine struct {
	slots, most int
	user        string
}

// openMPIWords reads the words after a host. user is the user before the host.
func openMPIWords(user string, words []pair) (l openMPILine, bad *fault) {
	l.user = user
	for _, w := range words {
		switch {
		case slices.Contains(slotKeys, w.key):
			if l.slots > 0 {
				return l, faultf("write slots= once", "slots are stated twice")
			}
			l.slots, bad = number(w.key, w.value, MaxSlots)
		case slices.Contains(mostKeys, w.key):
			if l.most > 0 {
				return l, faultf("write max_slots= once", "max_slots is stated twice")
			}
			l.most, bad = number(w.key, w.value, MaxSlots)
		case slices.Contains(nameKeys, w.key):
			if l.user != "" && l.user != w.value {
				return l, faultf("name one user", "the users %s and %s are named", quote(l.user), quote(w.value))
			}
			l.user = w.value
			bad = userName(l.user)
		default:
			bad = unknown(w)
		}
		if bad != nil {
			return l, bad
		}
	}
	return l, nil
}
