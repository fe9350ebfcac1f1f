package launcher

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/wire"
)

// NetworkError is that hosts have no network over which their ranks could meet.
type NetworkError struct{ text string }

// Error says which hosts have which networks.
func (e *NetworkError) Error() string { return e.text }

// Hint says what to do.
func (*NetworkError) Hint() string {
	return "name a network that all hosts have with --network, as 10.0.0.0/16 or the name of an interface, or leave hosts out"
}

// port is how a host is connected.
type port struct {
	host       string
	reached    netip.Addr // the address by which gangrun has reached it
	local      bool       // it is this machine
	interfaces []*wire.Interface
}

// way is how other hosts reach one.
type way struct {
	address string
	name    string // of the interface; empty where it is not known
	network string // CIDR; empty where it is not known
}

// ways lists the addresses of a host, in the order of its interfaces.
func (p port) ways() (all []way) {
	for _, i := range p.interfaces {
		for _, n := range i.Networks {
			if prefix, err := netip.ParsePrefix(n); err == nil {
				all = append(all, way{prefix.Addr().String(), i.Name, prefix.Masked().String()})
			}
		}
	}
	return all
}

// chooseNetwork returns the address of each host by which the others reach it: in
// the network that was asked for, a CIDR or the name of an interface; else in that
// by which gangrun itself has reached the hosts, if all are in it; else in the
// first that all have; else the addresses by which they were reached, between which
// there must be routes.
func chooseNetwork(ports []port, asked string) ([]way, error) {
	if asked != "" {
		return askedNetwork(ports, asked)
	}
	in := func(network string) ([]way, bool) {
		chosen := make([]way, len(ports))
		for i, p := range ports {
			at := slices.IndexFunc(p.ways(), func(w way) bool { return w.network == network })
			if at < 0 {
				return nil, false
			}
			chosen[i] = p.ways()[at]
			if slices.ContainsFunc(chosen[:i], func(w way) bool { return w.address == chosen[i].address }) {
				return nil, false // a bridge of its own on each host
			}
		}
		return chosen, true
	}
	reached := make([]way, len(ports))
	whole := true
	for i, p := range ports {
		reached[i] = way{address: p.reached.String()}
		at := slices.IndexFunc(p.ways(), func(w way) bool { return w.address == p.reached.String() })
		if at >= 0 {
			reached[i] = p.ways()[at]
			if chosen, ok := in(reached[i].network); ok {
				return chosen, nil
			}
		}
		whole = whole && p.reached.IsValid() && !p.reached.IsLoopback()
	}
	for _, w := range ports[0].ways() {
		if chosen, ok := in(w.network); ok {
			return chosen, nil
		}
	}
	if !whole {
		return nil, &NetworkError{fmt.Sprintf("no network has all of %s: %s", hostList(ports), networks(ports))}
	}
	return reached, nil
}

func askedNetwork(ports []port, asked string) ([]way, error) {
	prefix, err := netip.ParsePrefix(asked)
	byName := err != nil
	if byName && asked == "lo" || prefix.Addr().IsLoopback() {
		return nil, &NetworkError{fmt.Sprintf("network %q is that of each host with itself, on which hosts do not meet: %s", asked, networks(ports))}
	}
	chosen := make([]way, len(ports))
	var without []port
	for i, p := range ports {
		at := slices.IndexFunc(p.ways(), func(w way) bool {
			if byName {
				return w.name == asked
			}
			addr, err := netip.ParseAddr(w.address)
			return err == nil && prefix.Contains(addr)
		})
		if at < 0 {
			without = append(without, p)
			continue
		}
		chosen[i] = p.ways()[at]
	}
	what := fmt.Sprintf("address in the network %q", asked)
	if byName {
		what = fmt.Sprintf("interface %q that is up and has an address", asked)
	}
	switch n := len(without); {
	case n == 0:
		return chosen, nil
	case n == 1:
		return nil, &NetworkError{fmt.Sprintf("%s has no %s (it has %s)", without[0].host, what, without[0].networks())}
	case n == len(ports):
		return nil, &NetworkError{fmt.Sprintf("none of the %d hosts has an %s: %s", n, what, networks(ports))}
	default:
		return nil, &NetworkError{fmt.Sprintf("%d of the %d hosts have no %s: %s", n, len(ports), what, networks(without))}
	}
}

func hostList(ports []port) string {
	var names []string
	for _, p := range ports {
		names = append(names, p.host)
	}
	return strings.Join(names, ", ")
}

// networks says which networks the first few of hosts are in.
func networks(ports []port) string {
	var parts []string
	for _, p := range ports[:min(len(ports), 4)] {
		parts = append(parts, p.host+" has "+p.networks())
	}
	return strings.Join(parts, "; ")
}

// networks says which networks a host is in.
func (p port) networks() string {
	var in []string
	for _, w := range p.ways() {
		in = append(in, w.name+" "+w.network)
	}
	if len(in) == 0 {
		return "nothing"
	}
	return strings.Join(in, ", ")
}
