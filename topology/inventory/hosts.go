package inventory

import (
	"strings"
)

// Hosts reads the value of --hosts: entries [USER@]HOST[:SLOTS], separated by commas. HOST may
// be a node list such as h[01-16]. A host with stated slots is Hard (see job.Host).
func Hosts(text string) (List, error) {
	c := collect("--hosts", Flag)
	if len(text) > MaxSize {
		return List{}, one(c.source, 0, faultf("use a hostfile", "is too long"))
	}
	for rest, more := text, true; more && !c.enough(); {
		item := rest
		i := outside(rest, ',')
		if more = i >= 0; more {
			item, rest = rest[:i], rest[i+1:]
		}
		c.flag(strings.TrimSpace(item))
	}
	return c.done("write --hosts h1,h2:4")
}

// flag adds one item of --hosts.
func (c *collector) flag(item string) {
	if item == "" {
		c.bad(0, faultf("write names with single commas between, as in --hosts h1,h2:4", "has an empty name"))
		return
	}
	user, host, rest, hasUser, hasRest := apart(item)
	slots := 1
	var bad *fault
	if hasRest {
		slots, bad = number("the number of slots of "+quote(host), rest, MaxSlots)
	}
	if bad == nil && hasUser {
		bad = userName(user)
	}
	names := []string{host}
	if bad == nil && !strings.Contains(host, ":") {
		names, bad = expand(host, MaxHosts)
	}
	if bad != nil {
		c.bad(0, bad)
		return
	}
	for _, name := range names {
		name, bad := hostName(name)
		if bad != nil {
			c.bad(0, bad)
			return // all names of a node list have the same fault
		}
		h, isNew := c.host(0, name)
		switch {
		case h == nil:
			return
		case !isNew:
			c.bad(0, faultf("name each host once, with its slots, as in "+name+":2", "names %s twice", quote(name)))
			return
		}
		c.count(0, h, slots, hasRest)
		c.user(0, name, user)
	}
}
