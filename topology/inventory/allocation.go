package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// allocation is what one batch system says about the job to which this process belongs.
type allocation struct {
	system string // its name, for messages
	sign   string // the variable that shows that the batch system is there
	list   List
	err    error // why its hosts are not known
}

// choose returns the hosts of the allocation that gangrun uses. If a batch system was started inside a job of
// another one, its hosts are some of the hosts of that job. So choose takes the innermost allocation, whose
// hosts are part of all others. If several allocations are equal, choose takes the first.
func choose(found []allocation) (List, error) {
	known := slices.DeleteFunc(slices.Clone(found), func(a allocation) bool { return a.err != nil })
	switch {
	case len(found) == 0:
		return List{}, nil
	case len(known) == 0:
		return List{}, found[0].err
	}
	inner := slices.IndexFunc(known, func(a allocation) bool {
		return !slices.ContainsFunc(known, func(b allocation) bool { return !within(a.list, b.list) })
	})
	if inner < 0 {
		return List{}, contradiction(known)
	}
	list := known[inner].list
	for _, a := range found {
		if a.err != nil {
			list.Notes = append(list.Notes, fmt.Sprintf("%s is set, but the hosts of %s are not known: %s", a.sign, a.system, firstLine(a.err)))
		}
	}
	if len(found) > 1 {
		var systems []string
		for _, a := range found {
			systems = append(systems, a.system)
		}
		list.Notes = append(list.Notes, fmt.Sprintf("the environment has variables of %s; the allocation of %s is used", strings.Join(systems, " and "), known[inner].system))
	}
	return list, nil
}

// contradiction returns the error for allocations of which none is part of the others.
func contradiction(known []allocation) error {
	var signs, gives []string
	for _, a := range known {
		signs = append(signs, a.sign)
		gives = append(gives, fmt.Sprintf("%s gives %s", a.system, someHosts(a.list)))
	}
	return one(strings.Join(signs, " and "), 0, faultf("unset the variables of the job that this is not, or give --hosts", "the hosts differ: %s", strings.Join(gives, ", ")))
}

// someHosts names the first hosts of a list.
func someHosts(l List) string {
	const most = 3
	var names []string
	for _, h := range l.Hosts[:min(most, len(l.Hosts))] {
		names = append(names, quote(h.Name))
	}
	if more := len(l.Hosts) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, " ")
}

// within reports whether b has every host of a.
func within(a, b List) bool {
	has := map[string]bool{}
	for _, h := range b.Hosts {
		has[shortName(h.Name)] = true
	}
	return !slices.ContainsFunc(a.Hosts, func(h job.Host) bool { return !has[shortName(h.Name)] })
}

// shortName returns a host's name for comparisons: without the domain and in lower case. It does not change an
// address.
func shortName(name string) string {
	if _, err := netip.ParseAddr(name); err == nil {
		return name
	}
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	return name
}
