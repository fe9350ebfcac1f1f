package agent

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// localPortRange says from which ports the kernel gives one to who names none
// (ip-sysctl, ip_local_port_range).
const localPortRange = "/proc/sys/net/ipv4/ip_local_port_range"

const (
	firstPort  = 10000 // below it services have theirs
	lastPort   = 65535
	fewPorts   = 1000 // are not enough to choose one by chance
	portsTried = 100
)

// freePort returns a TCP port that is free, and that nobody gets who names none: the
// rank that is to listen there does so seconds later, and until then every outgoing
// connection of the host might take it.
func freePort() (int, error) {
	text, _ := os.ReadFile(localPortRange) // without it, the kernel chooses
	if ports := namedPorts(string(text)); len(ports) >= fewPorts {
		for range portsTried {
			if port, err := listens(ports[rand.IntN(len(ports))]); err == nil {
				return port, nil
			}
		}
	}
	return listens(0)
}

// namedPorts returns the ports from firstPort on that only who names them gets, where
// text is that of localPortRange; none where it cannot be read.
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

// listens returns a port, one that the kernel chooses for 0, if it can be listened on.
func listens(port int) (int, error) {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
