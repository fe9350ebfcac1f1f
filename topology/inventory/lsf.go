package inventory

import "strings"

// lsfHosts reads LSB_HOSTS, which has a name for each slot, separated by blanks.
func lsfHosts(text string) (List, error) {
	c := collect("LSB_HOSTS", LSF)
	for word := range strings.FieldsSeq(text) {
		if c.enough() {
			break
		}
		host, bad := hostName(word)
		if bad != nil {
			c.bad(0, bad)
			continue
		}
		if h, _ := c.host(0, host); h != nil {
			c.count(0, h, 1, true)
		}
	}
	return c.done(lsfHint)
}

// lsfCounts reads LSB_MCPU_HOSTS, which has names and numbers of slots in turn.
func lsfCounts(text string) (List, error) {
	c := collect("LSB_MCPU_HOSTS", LSF)
	words := strings.Fields(text)
	for i := 0; i < len(words) && !c.enough(); i += 2 {
		host, bad := hostName(words[i])
		slots := 0
		switch {
		case bad != nil:
		case i+1 == len(words):
			bad = faultf(lsfHint, "host %s has no number of slots", quote(host))
		default:
			slots, bad = number("the number of slots of "+quote(host), words[i+1], MaxSlots)
		}
		if bad != nil {
			c.bad(0, bad)
			continue
		}
		if h, _ := c.host(0, host); h != nil {
			c.count(0, h, slots, true)
		}
	}
	return c.done(lsfHint)
}

const lsfHint = "LSF should have set it; unset it, or give --hosts"
