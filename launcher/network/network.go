// Package network chooses the network over which the ranks of a gang communicate, from the network interfaces
// that the agents report. Its functions have no side effects.
package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/wire"
)

// Error reports that there is no network over which all hosts reach each other, as far as gangrun knows.
type Error struct{ text string }

// Error names the hosts and their networks.
func (e *Error) Error() string { return e.text }

// Hint says what the user should do.
func (*Error) Hint() string {
	return "name a network that all hosts have with --network, as 10.0.0.0/16 or the name of an interface, or leave hosts out"
}

// Host is a host with its network interfaces.
type Host struct {
	Name       string
	Reached    netip.Addr // the address at which gangrun reached the host
	Local      bool       // the host is on this machine
	Own        bool       // the user has listed this machine itself as a host; false for a simulated host
	Machine    string     // an ID of the machine that is the same under each of its names; empty if unknown
	Interfaces []*wire.Interface
}

// Address is an address at which other hosts reach a host.
type Address struct {
	IP        string
	Interface string // the name of the interface; empty if unknown
	Network   string // as CIDR; empty if unknown
}

// addresses lists the addresses of a host, in the order of its interfaces.
func (h Host) addresses() (all []Address) {
	for _, i := range h.Interfaces {
		for _, n := range i.Networks {
			if prefix, err := netip.ParsePrefix(n); err == nil {
				all = append(all, Address{prefix.Addr().String(), i.Name, prefix.Masked().String()})
			}
		}
	}
	return all
}

// Choose returns, for each host, the address at which the other hosts reach it. userNetwork is the network that the
// user has named: a CIDR, the name of an interface, or empty.
//
// If userNetwork is not empty, all addresses are in that network. Choose returns an *Error if a host has no address in
// it, or if it is the loopback network.
//
// If userNetwork is empty, Choose prefers the network through which gangrun has reached the hosts, and after it the
// first network that all hosts have. If the hosts have no network in common, Choose returns the addresses at which
// gangrun has reached them. There must then be routes between these addresses. If gangrun has reached one of these
// hosts at a loopback address, or at an address that is not known, Choose returns an *Error instead.
func Choose(hosts []Host, userNetwork string) ([]Address, error) {
	if userNetwork != "" {
		return inUserNetwork(hosts, userNetwork)
	}
	in := func(network string) ([]Address, bool) {
		chosen := make([]Address, len(hosts))
		for i, h := range hosts {
			at := slices.IndexFunc(h.addresses(), func(a Address) bool { return a.Network == network })
			if at < 0 {
				return nil, false
			}
			chosen[i] = h.addresses()[at]
			if slices.ContainsFunc(chosen[:i], func(a Address) bool { return a.IP == chosen[i].IP }) {
				return nil, false // each host has its own bridge of that name, such as docker0
			}
		}
		return chosen, true
	}
	reached := make([]Address, len(hosts))
	whole := true
	for i, h := range hosts {
		reached[i] = Address{IP: h.Reached.String()}
		at := slices.IndexFunc(h.addresses(), func(a Address) bool { return a.IP == h.Reached.String() })
		if at >= 0 {
			reached[i] = h.addresses()[at]
			if chosen, ok := in(reached[i].Network); ok {
				return chosen, nil
			}
		}
		whole = whole && h.Reached.IsValid() && !h.Reached.IsLoopback()
	}
	for _, a := range hosts[0].addresses() {
		if chosen, ok := in(a.Network); ok {
			return chosen, nil
		}
	}
	if !whole {
		return nil, &Error{fmt.Sprintf("no network has all of %s: %s", hostList(hosts), networks(hosts))}
	}
	return reached, nil
}

func inUserNetwork(hosts []Host, userNetwork string) ([]Address, error) {
	prefix, err := netip.ParsePrefix(userNetwork)
	byName := err != nil
	if byName && userNetwork == "lo" || prefix.Addr().IsLoopback() {
		return nil, &Error{fmt.Sprintf("network %q is that of each host with itself, on which hosts do not meet: %s", userNetwork, networks(hosts))}
	}
	chosen := make([]Address, len(hosts))
	var without []Host
	for i, h := range hosts {
		at := slices.IndexFunc(h.addresses(), func(a Address) bool {
			if byName {
				return a.Interface == userNetwork
			}
			addr, err := netip.ParseAddr(a.IP)
			return err == nil && prefix.Contains(addr)
		})
		if at < 0 {
			without = append(without, h)
			continue
		}
		chosen[i] = h.addresses()[at]
	}
	what := fmt.Sprintf("address in the network %q", userNetwork)
	if byName {
		what = fmt.Sprintf("interface %q that is up and has an address", userNetwork)
	}
	switch n := len(without); {
	case n == 0:
		return chosen, nil
	case n == 1:
		return nil, &Error{fmt.Sprintf("%s has no %s (it has %s)", without[0].Name, what, without[0].networks())}
	case n == len(hosts):
		return nil, &Error{fmt.Sprintf("none of the %d hosts has an %s: %s", n, what, networks(hosts))}
	default:
		return nil, &Error{fmt.Sprintf("%d of the %d hosts have no %s: %s", n, len(hosts), what, networks(without))}
	}
}

func hostList(hosts []Host) string {
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return strings.Join(names, ", ")
}

// networks names the networks of the first four hosts.
func networks(hosts []Host) string {
	var parts []string
	for _, h := range hosts[:min(len(hosts), 4)] {
		parts = append(parts, h.Name+" has "+h.networks())
	}
	return strings.Join(parts, "; ")
}

// networks names the networks of a host.
func (h Host) networks() string {
	var in []string
	for _, a := range h.addresses() {
		in = append(in, a.Interface+" "+a.Network)
	}
	if len(in) == 0 {
		return "nothing"
	}
	return strings.Join(in, ", ")
}
