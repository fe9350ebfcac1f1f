package agent

import (
	"errors"
	"net"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNamedPorts(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		in   []int
		out  []int
	}{
		{"32768\t60999\n", 32768 - 10000 + 65535 - 60999, []int{10000, 32767, 61000, 65535}, []int{9999, 32768, 60999}},
		{"1024 65535", 0, nil, []int{20000}},
		{"9000 20000", 65535 - 20000, []int{20001}, []int{10000, 20000}},
		{"", 0, nil, []int{20000}},
		{"32768", 0, nil, []int{20000}},
	} {
		ports := namedPorts(test.text)
		if len(ports) != test.n {
			t.Errorf("%q leaves %d ports, want %d", test.text, len(ports), test.n)
		}
		for _, port := range test.in {
			if !slices.Contains(ports, port) {
				t.Errorf("%q does not leave %d", test.text, port)
			}
		}
		for _, port := range test.out {
			if slices.Contains(ports, port) {
				t.Errorf("%q leaves %d", test.text, port)
			}
		}
	}
}

// TestFreePort checks that a free port is outside the range for outgoing connections, and not in use.
func TestFreePort(t *testing.T) {
	text, err := os.ReadFile(localPortRange)
	if err != nil {
		t.Fatal(err)
	}
	named := namedPorts(string(text))
	for range 20 {
		port, err := freePort()
		if err != nil || len(named) >= fewPorts && !slices.Contains(named, port) {
			t.Errorf("port %d, %v", port, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if port, err := listens(taken.Addr().(*net.TCPAddr).Port); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a port that is taken: %d, %v", port, err)
	}
}
