package testhosts

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// control is the controller's number on the networks.
const control = 254

// address returns the address of a host on a network. Networks are numbered from 0.
func address(network, number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(77 + network), 0, byte(number)})
}

// port returns the name of the fabric's end of a host's link.
func port(network, number int) string { return fmt.Sprintf("n%dp%d", network, number) }

// inNet runs a program in the network namespace of a process.
func inNet(pid int, input string, argv ...string) error {
	return run(input, append([]string{"nsenter", "-t", strconv.Itoa(pid), "-n", "--"}, argv...)...)
}

// ip passes lines to the program ip in the network namespace of a process.
func ip(pid int, lines ...string) error {
	return inNet(pid, strings.Join(lines, "\n"), "ip", "-batch", "-")
}

// connect puts a link for each network between the fabric and the network
// namespace of a process, on the bridge or not. A host has the same hardware
// addresses at each boot.
func (b *Bed) connect(number, pid int, bridged bool) error {
	var outside []string
	inside := []string{"link set lo up"}
	for network := range b.settings.networks {
		eth := fmt.Sprintf("eth%d", network)
		outside = append(outside,
			fmt.Sprintf("link add %s type veth peer name %s address 02:67:72:00:%02x:%02x netns %d", port(network, number), eth, network, number, pid),
			fmt.Sprintf("link set %s up", port(network, number)))
		if bridged {
			outside = append(outside, fmt.Sprintf("link set %s master br%d", port(network, number), network))
		}
		inside = append(inside,
			fmt.Sprintf("addr add %v/24 dev %s", address(network, number), eth),
			fmt.Sprintf("link set %s up", eth))
	}
	if err := ip(b.fabric, outside...); err != nil {
		return err
	}
	return ip(pid, inside...)
}

// disconnect removes the links of a host that is down. The kernel does so too, but later. The
// second message appears if the kernel removes a link while ip does.
func (b *Bed) disconnect(number int) error {
	for network := range b.settings.networks {
		err := ip(b.fabric, "link del "+port(network, number))
		if err == nil || strings.Contains(err.Error(), "Cannot find device") || strings.Contains(err.Error(), "No such device") {
			continue
		}
		return err
	}
	return nil
}

// ports changes the fabric's ends of a host's links. what is an ip-link(8) setting, with %d
// for the number of the network.
func (b *Bed) ports(number int, what string) error {
	var lines []string
	for network := range b.settings.networks {
		lines = append(lines, "link set "+port(network, number)+" "+strings.ReplaceAll(what, "%d", strconv.Itoa(network)))
	}
	return ip(b.fabric, lines...)
}
