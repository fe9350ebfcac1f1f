package job

// Host is one machine, or one simulated host, that can hold ranks.
type Host struct {
	Name string `json:"name"`
	// Address is what the other ranks connect to.
	Address string `json:"address"`
	// Interface is the network interface that has Address. Network is the network of that
	// interface, as a CIDR. Both are set if the gang is on several machines.
	Interface string `json:"interface,omitempty"`
	Network   string `json:"network,omitempty"`
	// Slots is the number of ranks for which the host has room. If Hard is true, the user has set this limit.
	// Otherwise gangrun has derived it from the number of cores, and a gang may exceed it. It is 0 if it is not
	// known.
	Slots  int   `json:"slots"`
	Hard   bool  `json:"hard,omitempty"`
	Cores  int   `json:"cores,omitempty"`
	Memory int64 `json:"memory,omitempty"` // bytes
	// Rack and Switch say where the host is. All hosts that have neither
	// Rack nor Switch count as being in one place.
	Rack    string   `json:"rack,omitempty"`
	Switch  string   `json:"switch,omitempty"`
	Devices []Device `json:"devices,omitempty"`
	// Links[i][j] says how Devices i and j are connected; nil if that is not known. The matrix is
	// symmetric, and its diagonal is empty.
	Links [][]Link `json:"links,omitempty"`
	NICs  []NIC    `json:"nics,omitempty"`
}

// Device is one GPU of a host, or one MIG instance.
type Device struct {
	// UUID is the UUID that the driver reports. If it reports none, UUID is the word GPU and
	// the index, as in "GPU0".
	UUID  string `json:"uuid"`
	Index int    `json:"index"`
	Name  string `json:"name,omitempty"`
	// GPU is the UUID of the GPU to which a MIG instance belongs.
	GPU    string `json:"gpu,omitempty"`
	PCI    string `json:"pci,omitempty"`    // bus id, as in 0000:3b:00.0
	Memory int64  `json:"memory,omitempty"` // bytes
	CPUs   string `json:"cpus,omitempty"`   // list of the CPUs that are close to the device, as in 0-15,32-47
	NUMA   string `json:"numa,omitempty"`   // number of its NUMA node, empty when it is not known
	// Busy says who uses the device, and Sick says what is wrong with it. If both are empty, a
	// gang may use the device.
	Busy string `json:"busy,omitempty"`
	Sick string `json:"sick,omitempty"`
}

// NIC is a network interface through which GPUs may send.
type NIC struct {
	Name string `json:"name"` // as in mlx5_0 or eth0
	PCI  string `json:"pci,omitempty"`
	NUMA string `json:"numa,omitempty"`
	// Links says how the interface is connected to each of the host's Devices.
	Links []Link `json:"links,omitempty"`
}

// Link is how two devices of a host are connected, as "nvidia-smi topo -m" shows it. It is NV with the number
// of NVLinks, such as NV4, or the kind of the path through the machine, such as LinkPIX. It is empty if the path
// is not known, and between a device and itself. NVIDIA says "PCIe bridge" for a PCIe switch.
type Link string

// The links other than NVLinks, the closest first.
const (
	LinkPSB  Link = "PSB"  // on the same board, or MIG instances of the same GPU
	LinkPIX  Link = "PIX"  // at most one PCIe switch
	LinkPXB  Link = "PXB"  // several PCIe switches, no PCIe host bridge
	LinkPHB  Link = "PHB"  // a PCIe host bridge, as a rule the CPU
	LinkNODE Link = "NODE" // several PCIe host bridges of one NUMA node
	LinkSYS  Link = "SYS"  // the connection between NUMA nodes
)

// Inventory has every host that a gang may use, with the hardware that gangrun knows.
type Inventory struct {
	Hosts []Host `json:"hosts"`
}
