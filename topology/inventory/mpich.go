package inventory

// mpich reads a machine file as MPICH's hydra does. Each line has HOST[:SLOTS] [user=NAME] [binding=...], or
// MVAPICH's HOST:SLOTS:INTERFACE. Further lines of a host add to its slots. A line without slots adds 1.
func mpich(name string, text []byte) *collector {
	c := collect(name, MPICH)
	hostLines(text, func(line int, word string, words []pair) {
		if c.enough() {
			return
		}
		user, hostText, rest, hasUser, hasRest := apart(word)
		slots := 1
		var bad *fault
		if hasUser {
			bad = userName(user)
		}
		var host string
		if bad == nil {
			host, bad = hostName(hostText)
		}
		if bad == nil && hasRest {
			if i := outside(rest, ':'); i >= 0 {
				if !plainName(rest[i+1:]) {
					bad = faultf("write HOST:SLOTS or HOST:SLOTS:INTERFACE", "%s is no name of an interface", quote(rest[i+1:]))
				}
				rest = rest[:i]
				c.note(line, "the interface is ignored: gangrun chooses interfaces by itself")
			}
			if bad == nil {
				slots, bad = number("the number of slots of "+quote(host), rest, MaxSlots)
			}
		}
		for _, w := range words {
			if bad != nil {
				break
			}
			switch w.key {
			case "user":
				if user != "" && user != w.value {
					bad = faultf("name one user", "the users %s and %s are named", quote(user), quote(w.value))
					break
				}
				user = w.value
				bad = userName(user)
			case "binding":
				c.note(line, "binding= is ignored: gangrun binds ranks by where their GPUs are")
			case "ifname", "interface":
				c.note(line, "the interface is ignored: gangrun chooses interfaces by itself")
			default:
				bad = unknown(w)
			}
		}
		if bad != nil {
			c.bad(line, bad)
			return
		}
		stated := Line{Host: host, User: user}
		if hasRest {
			stated.Slots = slots
		}
		c.stated = append(c.stated, stated)
		h, isNew := c.host(line, host)
		if h == nil {
			return
		}
		c.count(line, h, slots, hasRest || !isNew)
		c.user(line, host, user)
	})
	return c
}
