package survey

import (
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/wire"
)

// Capacity returns the number of cores that this process may use, and the host's memory in
// bytes.
func Capacity() (cores int, memory int64) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		memory = int64(info.Totalram) * int64(info.Unit)
	}
	return runtime.NumCPU(), memory
}

// Interfaces returns the network interfaces that are up and lead to other hosts.
func Interfaces() (list []*wire.Interface) {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		found := &wire.Interface{Name: i.Name}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				found.Networks = append(found.Networks, n.String())
			}
		}
		if len(found.Networks) > 0 {
			list = append(list, found)
		}
	}
	return list
}

// RDMA returns the kernel's names of the InfiniBand and RoCE devices.
func RDMA() (names []string) {
	entries, err := os.ReadDir("/sys/class/infiniband")
	if err != nil {
		return nil // there are none
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
