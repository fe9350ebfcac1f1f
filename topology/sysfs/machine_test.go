package sysfs

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing/fstest"
)

// sys is a /sys in which a test builds machines.
type sys struct{ fstest.MapFS }

func newSys() sys { return sys{fstest.MapFS{}} }

func (s sys) file(name, text string) { s.MapFS[name] = &fstest.MapFile{Data: []byte(text + "\n")} }

// link makes name a symbolic link to a path below /sys.
func (s sys) link(name, to string) {
	target := strings.Repeat("../", strings.Count(name, "/")) + to
	s.MapFS[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

// node adds a NUMA node.
func (s sys) node(id int, cpus, distance string) {
	dir := fmt.Sprintf("devices/system/node/node%d/", id)
	s.file(dir+"cpulist", cpus)
	s.file(dir+"distance", distance)
	s.file(dir+"meminfo", fmt.Sprintf("Node %d MemTotal:       1048576 kB\nNode %d MemFree:  5 kB", id, id))
}

// pci adds the device at the end of a path such as "0000:3a 0000:3a:00.0 0000:3b:00.0", and the bridges before
// it.
func (s sys) pci(way, maker, class string, numa int, cpus string) string {
	ids := strings.Fields(way)
	at := "devices/pci" + ids[0]
	for i, id := range ids[1:] {
		at = path.Join(at, id)
		s.link("bus/pci/devices/"+id, at)
		s.file(at+"/numa_node", fmt.Sprint(numa))
		s.file(at+"/local_cpulist", cpus)
		if last := i == len(ids)-2; last {
			s.file(at+"/vendor", maker)
			s.file(at+"/class", class)
		} else {
			s.file(at+"/vendor", "0x10b5")
			s.file(at+"/class", "0x060400")
		}
	}
	return at
}

func (s sys) gpu(way string, numa int, cpus string) { s.pci(way, "0x10de", "0x030200", numa, cpus) }

func (s sys) nic(way, name, layer, state, net string, numa int, cpus string) {
	at := s.pci(way, "0x15b3", "0x020700", numa, cpus)
	dev := at + "/infiniband/" + name
	s.link("class/infiniband/"+name, dev)
	s.file(dev+"/ports/1/link_layer", layer)
	s.file(dev+"/ports/1/state", state)
	s.file(dev+"/ports/1/rate", "200 Gb/sec (4X HDR)")
	s.file(at+"/net/"+net+"/mtu", "9000")
}

// dgx1V has two GPUs and a NIC behind each of four switches. Each socket has two of the switches.
func dgx1V() sys {
	s := newSys()
	s.file("devices/system/cpu/online", "0-79")
	s.node(0, "0-19,40-59", "10 21")
	s.node(1, "20-39,60-79", "21 10")
	for i := range 4 {
		numa, cpus, bus := i/2, "0-19,40-59", i*4+4
		root := "0000:00 0000:00:0%d.0"
		if numa == 1 {
			cpus, root, bus = "20-39,60-79", "0000:80 0000:80:0%d.0", 0x80+bus-8
		}
		up := fmt.Sprintf(root+" 0000:%02x:00.0", 2+i%2, bus)
		s.gpu(fmt.Sprintf("%s 0000:%02x:08.0 0000:%02x:00.0", up, bus+1, bus+2), numa, cpus)
		s.gpu(fmt.Sprintf("%s 0000:%02x:0c.0 0000:%02x:00.0", up, bus+1, bus+3), numa, cpus)
		s.nic(fmt.Sprintf("%s 0000:%02x:10.0 0000:%02x:00.0", up, bus+1, 0x20+bus), fmt.Sprintf("mlx5_%d", i), "InfiniBand", "4: ACTIVE", fmt.Sprintf("ib%d", i), numa, cpus)
	}
	return s
}

// dgxA100 has four NUMA nodes with two GPUs and two NICs each. They are behind switches below another switch.
// Two more NICs are on a node of their own.
func dgxA100() sys {
	s := newSys()
	s.file("devices/system/cpu/online", "0-255")
	cpus := func(n int) string { return fmt.Sprintf("%d-%d,%d-%d", n*16, n*16+15, 128+n*16, 128+n*16+15) }
	for n := range 8 {
		s.node(n, cpus(n), strings.Repeat("12 ", n)+"10"+strings.Repeat(" 12", 7-n))
	}
	nic := 0
	for i, n := range []int{3, 1, 7, 5} {
		bus := 0x40 * (i % 4)
		root := fmt.Sprintf("0000:%02x 0000:%02x:01.1", bus, bus)
		up := fmt.Sprintf("%s 0000:%02x:00.0", root, bus+1)
		gpus := fmt.Sprintf("%s 0000:%02x:00.0 0000:%02x:00.0", up, bus+2, bus+3)
		s.gpu(fmt.Sprintf("%s 0000:%02x:00.0 0000:%02x:00.0", gpus, bus+4, bus+7), n, cpus(n))
		s.gpu(fmt.Sprintf("%s 0000:%02x:01.0 0000:%02x:00.0", gpus, bus+4, bus+8), n, cpus(n))
		for k := range 2 {
			s.nic(fmt.Sprintf("%s 0000:%02x:%02x.0 0000:%02x:00.0", up, bus+2, 4+k, bus+12+k), fmt.Sprintf("mlx5_%d", nic), "InfiniBand", "4: ACTIVE", fmt.Sprintf("ib%d", nic), n, cpus(n))
			nic++
		}
	}
	for k := range 2 {
		s.nic(fmt.Sprintf("0000:e0 0000:e0:01.1 0000:e1:00.%d", k), fmt.Sprintf("mlx5_%d", nic), "Ethernet", "4: ACTIVE", fmt.Sprintf("enp225s0f%d", k), 4, cpus(4))
		nic++
	}
	return s
}

// pcie8 has eight GPUs on two sockets. Each socket has two host bridges and two root ports, with two GPUs
// behind each root port.
func pcie8() sys {
	s := newSys()
	s.file("devices/system/cpu/online", "0-95")
	s.node(0, "0-23,48-71", "10 21")
	s.node(1, "24-47,72-95", "21 10")
	for i := range 4 {
		bus, cpus := 0x18+i*0x30, "0-23,48-71"
		if i >= 2 {
			cpus = "24-47,72-95"
		}
		up := fmt.Sprintf("0000:%02x 0000:%02x:00.0 0000:%02x:00.0", bus, bus, bus+1)
		for k := range 2 {
			s.gpu(fmt.Sprintf("%s 0000:%02x:%02x.0 0000:%02x:00.0", up, bus+2, 4*k, bus+3+k), i/2, cpus)
		}
	}
	return s
}

// workstation has one NUMA node, which the firmware does not report, and two GPUs at root ports of one host
// bridge. One of the GPUs also has an audio function.
func workstation() sys {
	s := newSys()
	s.file("devices/system/cpu/online", "0-11")
	s.node(0, "0-11", "10")
	s.pci("0000:00 0000:00:01.0 0000:01:00.0", "0x10de", "0x030000", -1, "0-11")
	s.pci("0000:00 0000:00:01.0 0000:01:00.1", "0x10de", "0x040300", -1, "0-11")
	s.pci("0000:00 0000:00:01.1 0000:02:00.0", "0x10de", "0x030000", -1, "0-11")
	s.pci("0000:00 0000:00:02.0", "0x8086", "0x030000", -1, "0-11")
	return s
}

// cloud is a virtual machine. Each of its GPUs is in a PCI domain of its own.
func cloud() sys {
	s := newSys()
	s.file("devices/system/cpu/online", "0-39")
	s.node(0, "0-19", "10 20")
	s.node(1, "20-39", "20 10")
	s.gpu("0001:00 0001:00:00.0", 0, "0-19")
	s.gpu("0002:00 0002:00:00.0", 0, "0-19")
	s.gpu("10003:00 10003:00:00.0", -1, "0-39")
	return s
}
