package inventory

import "fmt"

// plain reads a list with one host on each line. If a name is repeated, every line counts as a slot.
func plain(name string, text []byte) *collector {
	c := collect(name, Plain)
	repeated := 0
	hostLines(text, func(line int, word string, words []pair) {
		if c.enough() {
			return
		}
		host, bad := hostName(word)
		if bad == nil && len(words) > 0 {
			bad = unknown(words[0])
		}
		if bad != nil {
			c.bad(line, bad)
			return
		}
		c.stated = append(c.stated, Line{Host: host})
		h, isNew := c.host(line, host)
		if h == nil {
			return
		}
		c.count(line, h, 1, false)
		if !isNew && repeated == 0 {
			repeated = line
		}
	})
	if repeated > 0 {
		c.list.Kind = Nodefile
		c.note(0, fmt.Sprintf("%s:%d names a host again, so every line is taken for one slot", name, repeated))
		c.harden()
	}
	return c
}

// nodefile reads a file with a line for each slot, as PBS and LSF write it.
func nodefile(name string, kind Kind, text []byte) (List, error) {
	text, err := clean(name, text, MaxSize)
	if err != nil {
		return List{}, err
	}
	c := collect(name, kind)
	lines(text, func(line int, words []string) {
		if c.enough() {
			return
		}
		host, bad := hostName(words[0])
		if bad == nil && len(words) > 1 {
			bad = faultf("a node file has one name a line, once for each slot", "unknown word %s", quote(words[1]))
		}
		if bad != nil {
			c.bad(line, bad)
			return
		}
		if h, _ := c.host(line, host); h != nil {
			c.count(line, h, 1, true)
		}
	})
	return c.done("the batch system should have written it; ask for a new allocation, or give --hosts")
}

// harden marks the slots of all hosts as stated.
func (c *collector) harden() {
	for i := range c.list.Hosts {
		c.list.Hosts[i].Hard = true
	}
}
