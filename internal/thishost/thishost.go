// Package thishost finds out which hosts of a list are the machine on which this process runs.
package thishost

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
)

// Localhost is a name by which every machine calls itself.
const Localhost = "localhost"

// Name returns the host name of this machine.
func Name() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return Localhost
	}
	return name
}

// Matcher decides which hosts of a list are this machine.
type Matcher struct {
	name      string       // the host name
	addresses []netip.Addr // those of the network interfaces
	// contained says that this process is in a PID namespace of its own, as in a
	// container. A container may share the addresses of its machine, and SSH to them
	// leads out of the container: an address alone proves nothing there.
	contained bool
	// resolve returns the addresses that SSH would connect to for a name; an error
	// where that is not known.
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)
}

// resolveLimit bounds how long the names of a list are looked up. A name that is not
// found by then counts as one that cannot be resolved.
const resolveLimit = 3 * time.Second

// lookups is how many names are looked up at once.
const lookups = 64

// initialPIDNamespace is the PID namespace of the machine itself: the kernel gives it
// the same number on every boot.
const initialPIDNamespace = "pid:[4026531836]"

// New returns the Matcher of this machine.
func New() Matcher {
	s := Matcher{name: Name(), resolve: plainAddresses}
	addresses, _ := net.InterfaceAddrs() // without them, names decide
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(ip.IP); ok {
				s.addresses = append(s.addresses, addr.Unmap())
			}
		}
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	s.contained = err == nil && namespace != initialPIDNamespace
	if config, err := sshconfig.Default(); err == nil {
		s.resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return sshAddresses(ctx, config, name)
		}
	}
	return s
}

// errElsewhere is the error of a name whose address may belong to another machine
// although it looks like one of this machine.
var errElsewhere = errors.New("SSH reaches it through another host, or on a port of its own")

// sshAddresses resolves a name as ssh_config has it. Behind a jump host an address may
// be that of another network, and behind a port of its own there may be a container.
func sshAddresses(ctx context.Context, config sshconfig.Config, name string) ([]netip.Addr, error) {
	e, _, err := config.Resolve(name)
	switch {
	case err != nil: // whoever dials the host reports that
		return plainAddresses(ctx, name)
	case len(e.Jumps) > 0 || e.Port != sshconfig.DefaultPort:
		return nil, errElsewhere
	}
	return plainAddresses(ctx, e.Host)
}

// plainAddresses resolves a name without ssh_config.
func plainAddresses(ctx context.Context, name string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{addr}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// is reports whether a host is this machine. The address may be a name. Where that resolves, the addresses
// decide: two machines can have one name in two domains. Where it does not, it must be this machine's own
// name.
func (s Matcher) is(ctx context.Context, name, address string) bool {
	name, address = plainName(name), plainName(address)
	if ip, err := netip.ParseAddr(address); address == Localhost || err == nil && ip.IsLoopback() {
		return true
	}
	found, err := s.resolve(ctx, address)
	if err != nil || len(found) == 0 {
		own := plainName(s.name)
		return address == own || address == firstLabel(own)
	}
	if !slices.ContainsFunc(found, s.has) {
		return false
	}
	own := firstLabel(plainName(s.name))
	return !s.contained || firstLabel(name) == own || firstLabel(address) == own
}

// has reports whether an address is one of this machine's. A link-local address does
// not count: on each link it belongs to another machine.
func (s Matcher) has(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsLoopback() || !addr.IsLinkLocalUnicast() && slices.Contains(s.addresses, addr)
}

// Among returns the set of names of those hosts that are this machine.
func (s Matcher) Among(ctx context.Context, hosts []job.Host) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	is := make([]bool, len(hosts))
	free := make(chan struct{}, lookups)
	var all sync.WaitGroup
	for i, h := range hosts {
		free <- struct{}{}
		all.Go(func() {
			is[i] = s.is(ctx, h.Name, h.Address)
			<-free
		})
	}
	all.Wait()
	own := map[string]bool{}
	for i, h := range hosts {
		if is[i] {
			own[h.Name] = true
		}
	}
	return own
}

// Called returns a name that resolves to this machine: its host name, or Localhost if the host
// name resolves to another machine.
func (s Matcher) Called(ctx context.Context) string {
	if s.is(ctx, s.name, s.name) {
		return s.name
	}
	return Localhost
}

// plainName is a host name in the form in which names are compared.
func plainName(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// firstLabel is a host name without its domain; an address has none.
func firstLabel(name string) string {
	if _, err := netip.ParseAddr(name); err == nil {
		return name
	}
	label, _, _ := strings.Cut(name, ".")
	return label
}
