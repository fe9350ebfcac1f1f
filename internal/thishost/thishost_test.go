package thishost

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
)

// siteA is the machine node1.siteA, which is in two networks, with the data of its resolver.
func siteA() Matcher {
	known := map[string][]string{
		"node1.sitea": {"10.1.0.1"}, "node1": {"10.1.0.1"}, "node1-ib": {"192.168.9.1"}, "node1.siteb": {"10.2.0.1"},
		"node2.sitea": {"10.1.0.2"}, "loop.sitea": {"127.0.1.1"}, "both": {"10.2.0.9", "10.1.0.1"}, "node1.link": {"fe80::1"},
	}
	return Matcher{
		name:      "Node1.siteA",
		addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("192.168.9.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fe80::1")},
		resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			var found []netip.Addr
			for _, text := range known[name] {
				found = append(found, netip.MustParseAddr(text))
			}
			if addr, err := netip.ParseAddr(name); err == nil {
				found = append(found, addr)
			}
			if found == nil {
				return nil, errors.New("no such host")
			}
			return found, nil
		},
	}
}

// TestMatcherIs checks that a host is this machine if its name resolves to an address of this machine. If the name
// does not resolve, it must be this machine's own name.
func TestMatcherIs(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.3.2.1": true, "::1": true,
		"node1.siteA": true, "NODE1.SITEA.": true, "node1": true, "node1-ib": true, "loop.siteA": true, "both": true,
		"10.1.0.1": true, "::ffff:10.1.0.1": true, "fd00::1": true,
		"node1.siteB": false, "node2.siteA": false, "node1.siteC": false, "node10": false, "10.2.0.1": false,
		"node1.link": false, "fe80::1": false,
	} {
		if got := siteA().is(t.Context(), name, name); got != want {
			t.Errorf("%s on node1.siteA: %t, want %t", name, got, want)
		}
	}
}

// TestMatcherIsWithoutResolver checks that, without a resolver, only the full host name and the name without the
// domain are this machine's.
func TestMatcherIsWithoutResolver(t *testing.T) {
	s := siteA()
	s.resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no name server answers") }
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "node1": true, "node1.sitea": true, "NODE1.siteA.": true,
		"node1.siteB": false, "node1.site": false, "node2": false, "10.1.0.1": false,
	} {
		if got := s.is(t.Context(), name, name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

// TestMatcherIsInContainer checks a container that shares the network of its machine. SSH to an address of the machine
// leads out of the container, so only the container's own names are the container.
func TestMatcherIsInContainer(t *testing.T) {
	s := siteA()
	s.contained = true
	for _, c := range []struct {
		name, address string
		want          bool
	}{
		{"localhost", "localhost", true}, {"node1", "node1", true}, {"node1.siteA", "node1.siteA", true}, {"node1", "10.1.0.1", true},
		{"node1-ib", "node1-ib", false}, {"10.1.0.1", "10.1.0.1", false}, {"node1.siteB", "node1.siteB", false},
	} {
		if got := s.is(t.Context(), c.name, c.address); got != c.want {
			t.Errorf("%s at %s: %t, want %t", c.name, c.address, got, c.want)
		}
	}
}

// TestMatcherCalled checks that this machine is called by its host name, unless that name belongs to another machine.
func TestMatcherCalled(t *testing.T) {
	s := siteA()
	if got := s.Called(t.Context()); got != "Node1.siteA" {
		t.Errorf("it is called %q", got)
	}
	s.name = "node1.siteB"
	if got := s.Called(t.Context()); got != Localhost {
		t.Errorf("where its name is another machine's it is called %q", got)
	}
}

func TestMatcherAmong(t *testing.T) {
	hosts := []job.Host{{Name: "a", Address: "10.1.0.1"}, {Name: "node1.siteB", Address: "node1.siteB"}, {Name: "b", Address: "10.1.0.2"}, {Name: "node1", Address: "node1"}}
	if got, want := siteA().Among(t.Context(), hosts), map[string]bool{"a": true, "node1": true}; !maps.Equal(got, want) {
		t.Errorf("own are %v, want %v", got, want)
	}
}

// TestSSHAddresses checks that names are resolved with ssh_config. Behind a jump host or another port, an address of
// this machine may belong to another machine.
func TestSSHAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := "Host alias\n  HostName 10.9.8.7\nHost jumped\n  HostName 10.9.8.7\n  ProxyJump bastion\nHost port\n  HostName 10.9.8.7\n  Port 2222\nHost command 10.9.8.6\n  ProxyCommand nc %h %p\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := sshconfig.Config{UserFile: file, User: "me", UID: os.Getuid(), Home: filepath.Dir(file), Hostname: "here"}
	for name, want := range map[string]string{"alias": "10.9.8.7", "10.9.8.5": "10.9.8.5", "10.9.8.6": "10.9.8.6", "jumped": "", "port": ""} {
		got, err := sshAddresses(t.Context(), config, name)
		switch {
		case want == "" && !errors.Is(err, errElsewhere):
			t.Errorf("%s leads to %v, %v", name, got, err)
		case want != "" && (err != nil || len(got) != 1 || got[0].String() != want):
			t.Errorf("%s leads to %v, %v; want %s", name, got, err, want)
		}
	}
}
