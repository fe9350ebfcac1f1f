package network

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/wire"
)

func TestChoose(t *testing.T) {
	nic := func(name string, networks ...string) *wire.Interface {
		return &wire.Interface{Name: name, Networks: networks}
	}
	docker := nic("docker0", "172.17.0.1/16")
	two := func(reached1, reached2 string, first, second []*wire.Interface) []Host {
		at := func(text string) netip.Addr {
			if text == "" {
				return netip.Addr{}
			}
			return netip.MustParseAddr(text)
		}
		return []Host{{Name: "h1", Reached: at(reached1), Local: reached1 == "", Interfaces: first}, {Name: "h2", Reached: at(reached2), Local: reached2 == "", Interfaces: second}}
	}
	plain := two("10.0.0.1", "10.0.0.2",
		[]*wire.Interface{docker, nic("eth0", "10.0.0.1/24"), nic("ib0", "10.9.0.1/16")},
		[]*wire.Interface{nic("ib0", "10.9.0.2/16"), docker, nic("eth1", "fd00::2/64", "10.0.0.2/24")})
	for name, c := range map[string]struct {
		hosts []Host
		asked string
		want  []Address
		err   string
	}{
		"that by which they were reached": {plain, "", []Address{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.0.0.2", "eth1", "10.0.0.0/24"}}, ""},
		"asked for by CIDR":               {plain, "10.9.0.0/16", []Address{{"10.9.0.1", "ib0", "10.9.0.0/16"}, {"10.9.0.2", "ib0", "10.9.0.0/16"}}, ""},
		"asked for by a wider CIDR":       {plain, "10.0.0.0/8", []Address{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.9.0.2", "ib0", "10.9.0.0/16"}}, ""},
		"asked for by name":               {plain, "ib0", []Address{{"10.9.0.1", "ib0", "10.9.0.0/16"}, {"10.9.0.2", "ib0", "10.9.0.0/16"}}, ""},
		"asked for by name, on one host":  {plain, "eth0", nil, `h2 has no interface "eth0" that is up and has an address (it has ib0 10.9.0.0/16, docker0 172.17.0.0/16, eth1 fd00::/64, eth1 10.0.0.0/24)`},
		"asked for by CIDR, on one host":  {plain, "10.0.0.1/32", nil, `h2 has no address in the network "10.0.0.1/32" (it has ib0 10.9.0.0/16, `},
		"asked for by name, on no host":   {plain, "eth7", nil, `none of the 2 hosts has an interface "eth7" that is up and has an address: h1 has docker0 172.17.0.0/16, eth0 10.0.0.0/24, ib0 10.9.0.0/16; h2 has ib0 `},
		"asked for by CIDR, on no host":   {plain, "10.8.0.0/16", nil, `none of the 2 hosts has an address in the network "10.8.0.0/16": h1 has `},
		"asked for, on one of three": {append(slices.Clone(plain), Host{Name: "h3"}), "eth0", nil,
			`2 of the 3 hosts have no interface "eth0" that is up and has an address: h2 has ib0 10.9.0.0/16, docker0 172.17.0.0/16, eth1 fd00::/64, eth1 10.0.0.0/24; h3 has nothing`},
		"the loopback interface": {plain, "lo", nil, `network "lo" is that of each host with itself, on which hosts do not meet: h1 has `},
		"the loopback network":   {plain, "127.0.0.0/8", nil, `network "127.0.0.0/8" is that of each host with itself, on which hosts do not meet: h1 has `},
		"this machine and another": {
			two("", "10.0.0.2", []*wire.Interface{docker, nic("eth0", "10.0.0.1/24")}, []*wire.Interface{docker, nic("eth0", "10.0.0.2/24")}), "",
			[]Address{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.0.0.2", "eth0", "10.0.0.0/24"}}, ""},
		"reached through a jump host": {
			two("", "", []*wire.Interface{docker, nic("eth0", "10.0.0.1/24")}, []*wire.Interface{docker, nic("eth0", "10.0.0.2/24")}), "",
			[]Address{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.0.0.2", "eth0", "10.0.0.0/24"}}, ""},
		"reached over networks of their own, but joined by one": {
			two("10.1.0.1", "10.2.0.2", []*wire.Interface{nic("eth0", "10.1.0.1/24"), nic("eth1", "10.9.0.1/24")}, []*wire.Interface{nic("eth0", "10.2.0.2/24"), nic("eth1", "10.9.0.2/24")}), "",
			[]Address{{"10.9.0.1", "eth1", "10.9.0.0/24"}, {"10.9.0.2", "eth1", "10.9.0.0/24"}}, ""},
		"routed": {
			two("10.1.0.1", "10.2.0.2", []*wire.Interface{docker, nic("eth0", "10.1.0.1/24")}, []*wire.Interface{docker, nic("eth0", "10.2.0.2/24")}), "",
			[]Address{{"10.1.0.1", "eth0", "10.1.0.0/24"}, {"10.2.0.2", "eth0", "10.2.0.0/24"}}, ""},
		"nothing in common": {
			two("", "10.2.0.2", []*wire.Interface{docker}, []*wire.Interface{docker, nic("eth0", "10.2.0.2/24")}), "",
			nil, "no network has all of h1, h2: h1 has docker0 172.17.0.0/16; h2 has docker0 172.17.0.0/16, eth0 10.2.0.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(c.hosts, c.asked)
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.err) {
					t.Errorf("got %v, %v, want the error %s", got, err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}
