package inventory

// gridEngine reads PE_HOSTFILE, the file that Grid Engine writes for a parallel environment. Each line has a
// host, slots, a queue and processors. A host has a line for each of its queues.
func gridEngine(name string, text []byte) (List, error) {
	text, err := clean(name, text, MaxSize)
	if err != nil {
		return List{}, err
	}
	const hint = "Grid Engine should have written it, with lines such as h1 4 all.q@h1 UNDEFINED; unset PE_HOSTFILE, or give --hosts"
	c := collect(name, GridEngine)
	lines(text, func(line int, words []string) {
		if c.enough() {
			return
		}
		host, bad := hostName(words[0])
		slots := 0
		switch {
		case bad != nil:
		case len(words) == 1:
			bad = faultf(hint, "host %s has no number of slots", quote(host))
		default:
			slots, bad = number("the number of slots of "+quote(host), words[1], MaxSlots)
		}
		if bad != nil {
			c.bad(line, bad)
			return
		}
		if h, _ := c.host(line, host); h != nil {
			c.count(line, h, slots, true)
		}
	})
	return c.done(hint)
}
