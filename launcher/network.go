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
	chosen := make([]way, len(ports))
	for i, p := range ports {
		at := slices.IndexFunc(p.ways(), func(w way) bool {
			if byName {
				return w.name == asked
			}
			addr, err := netip.ParseAddr(w.address)
			return err == nil && prefix.Contains(addr)
		})
		if at < 0 {
			return nil, &NetworkError{fmt.Sprintf("network %q: %s has no address in it: %s", asked, p.host, networks([]port{p}))}
		}
		chosen[i] = p.ways()[at]
	}
	return chosen, nil
}

func hostList(ports []port) string {
	var names []string
	for _, p := range ports {
		names = append(names, p.host)
	}
	return strings.Join(names, ", ")
}

// networks says which networks hosts are in.
func networks(ports []port) string {
	var parts []string
	for _, p := range ports[:min(len(ports), 4)] {
		var in []string
		for _, w := range p.ways() {
			in = append(in, w.name+" "+w.network)
		}
		if len(in) == 0 {
			in = []string{"nothing"}
		}
		parts = append(parts, p.host+" has "+strings.Join(in, ", "))
	}
	return strings.Join(parts, "; ")
}
