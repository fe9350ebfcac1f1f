package launcher

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/wire"
)

func TestChooseNetwork(t *testing.T) {
	nic := func(name string, networks ...string) *wire.Interface {
		return &wire.Interface{Name: name, Networks: networks}
	}
	docker := nic("docker0", "172.17.0.1/16")
	two := func(reached1, reached2 string, first, second []*wire.Interface) []port {
		at := func(text string) netip.Addr {
			if text == "" {
				return netip.Addr{}
			}
			return netip.MustParseAddr(text)
		}
		return []port{{"h1", at(reached1), reached1 == "", first}, {"h2", at(reached2), reached2 == "", second}}
	}
	plain := two("10.0.0.1", "10.0.0.2",
		[]*wire.Interface{docker, nic("eth0", "10.0.0.1/24"), nic("ib0", "10.9.0.1/16")},
		[]*wire.Interface{nic("ib0", "10.9.0.2/16"), docker, nic("eth1", "fd00::2/64", "10.0.0.2/24")})
	for name, c := range map[string]struct {
		ports []port
		asked string
		want  []way
		err   string
	}{
		"that by which they were reached": {plain, "", []way{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.0.0.2", "eth1", "10.0.0.0/24"}}, ""},
		"asked for by CIDR":               {plain, "10.9.0.0/16", []way{{"10.9.0.1", "ib0", "10.9.0.0/16"}, {"10.9.0.2", "ib0", "10.9.0.0/16"}}, ""},
		"asked for by a wider CIDR":       {plain, "10.0.0.0/8", []way{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.9.0.2", "ib0", "10.9.0.0/16"}}, ""},
		"asked for by name":               {plain, "ib0", []way{{"10.9.0.1", "ib0", "10.9.0.0/16"}, {"10.9.0.2", "ib0", "10.9.0.0/16"}}, ""},
		"asked for, not there":            {plain, "eth0", nil, `network "eth0": h2 has no address in it: h2 has ib0 10.9.0.0/16, docker0 172.17.0.0/16, eth1 fd00::/64, eth1 10.0.0.0/24`},
		"this machine and another": {
			two("", "10.0.0.2", []*wire.Interface{docker, nic("eth0", "10.0.0.1/24")}, []*wire.Interface{docker, nic("eth0", "10.0.0.2/24")}), "",
			[]way{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.0.0.2", "eth0", "10.0.0.0/24"}}, ""},
		"reached through a jump host": {
			two("", "", []*wire.Interface{docker, nic("eth0", "10.0.0.1/24")}, []*wire.Interface{docker, nic("eth0", "10.0.0.2/24")}), "",
			[]way{{"10.0.0.1", "eth0", "10.0.0.0/24"}, {"10.0.0.2", "eth0", "10.0.0.0/24"}}, ""},
		"reached over networks of their own, but joined by one": {
			two("10.1.0.1", "10.2.0.2", []*wire.Interface{nic("eth0", "10.1.0.1/24"), nic("eth1", "10.9.0.1/24")}, []*wire.Interface{nic("eth0", "10.2.0.2/24"), nic("eth1", "10.9.0.2/24")}), "",
			[]way{{"10.9.0.1", "eth1", "10.9.0.0/24"}, {"10.9.0.2", "eth1", "10.9.0.0/24"}}, ""},
		"routed": {
			two("10.1.0.1", "10.2.0.2", []*wire.Interface{docker, nic("eth0", "10.1.0.1/24")}, []*wire.Interface{docker, nic("eth0", "10.2.0.2/24")}), "",
			[]way{{"10.1.0.1", "eth0", "10.1.0.0/24"}, {"10.2.0.2", "eth0", "10.2.0.0/24"}}, ""},
		"nothing in common": {
			two("", "10.2.0.2", []*wire.Interface{docker}, []*wire.Interface{docker, nic("eth0", "10.2.0.2/24")}), "",
			nil, "no network has all of h1, h2: h1 has docker0 172.17.0.0/16; h2 has docker0 172.17.0.0/16, eth0 10.2.0.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseNetwork(c.ports, c.asked)
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
