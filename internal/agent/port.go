package agent

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// localPortRange has the range of ports from which the kernel chooses if a socket names no port (see
// ip_local_port_range in the kernel's ip-sysctl documentation).
const localPortRange = "/proc/sys/net/ipv4/ip_local_port_range"

const (
	firstPort  = 10000 // services use the ports below
	lastPort   = 65535
	fewPorts   = 1000 // if there are fewer ports to choose from, the kernel chooses
	portsTried = 100
)

// freePort returns a free TCP port. If possible, it returns a port that the kernel does not choose for sockets that
// name no port. The rank listens on the port only seconds later, and until then the kernel might give such a port to an
// outgoing connection.
func freePort() (int, error) {
	text, _ := os.ReadFile(localPortRange) // without this range, the kernel chooses the port
	if ports := namedPorts(string(text)); len(ports) >= fewPorts {
		for range portsTried {
			if port, err := listens(ports[rand.IntN(len(ports))]); err == nil {
				return port, nil
			}
		}
	}
	return listens(0)
}

// namedPorts returns the ports that are at least firstPort and that the kernel does not choose. text is the content of
// localPortRange. If text is empty, there are none.
func namedPorts(text string) (ports []int) {
	var first, last int
	if n, _ := fmt.Sscan(text, &first, &last); n != 2 {
		return nil
	}
	for port := firstPort; port <= lastPort; port++ {
		if port < first || port > last {
			ports = append(ports, port)
		}
	}
	return ports
}

// listens returns port if a process can listen there. If port is 0, the kernel chooses the port.
func listens(port int) (int, error) {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
