package job

// Host is one machine, or one simulated host, that can hold ranks.
type Host struct {
	Name string `json:"name"`
	// Address is what the other ranks connect to.
	Address string `json:"address"`
	// Interface is the network interface with Address, and Network the CIDR of its network. They
	// are set if the gang is on several machines.
	Interface string `json:"interface,omitempty"`
	Network   string `json:"network,omitempty"`
	// Slots is the number of ranks for which the host has room. If Hard is true, the user has set
	// this limit; otherwise it is a preference derived from the host's cores.
	Slots  int   `json:"slots"`
	Hard   bool  `json:"hard,omitempty"`
	Cores  int   `json:"cores,omitempty"`
	Memory int64 `json:"memory,omitempty"` // bytes
	// Rack and Switch are where the host is. All hosts that have neither count as being in one place.
	Rack    string   `json:"rack,omitempty"`
	Switch  string   `json:"switch,omitempty"`
	Devices []Device `json:"devices,omitempty"`
	// Links has how each pair of Devices is connected; nil if that is not known. It is symmetric,
	// and its diagonal is empty.
	Links [][]Link `json:"links,omitempty"`
	NICs  []NIC    `json:"nics,omitempty"`
}

// Device is one GPU of a host, or one MIG instance.
type Device struct {
	// UUID is the driver's, or GPU and the index if the driver has none.
	UUID  string `json:"uuid"`
	Index int    `json:"index"`
	Name  string `json:"name,omitempty"`
	// GPU is the UUID of the GPU that a MIG instance is part of.
	GPU    string `json:"gpu,omitempty"`
	PCI    string `json:"pci,omitempty"`    // bus id, as in 0000:3b:00.0
	Memory int64  `json:"memory,omitempty"` // bytes
	CPUs   string `json:"cpus,omitempty"`   // list of the CPUs close to it, as in 0-15,32-47
	NUMA   string `json:"numa,omitempty"`   // number of its NUMA node, empty when it is not known
	// Busy names the user of the device, and Sick says what is wrong with it. Both are empty if
	// a gang may use it.
	Busy string `json:"busy,omitempty"`
	Sick string `json:"sick,omitempty"`
}

// NIC is a network interface through which GPUs may send.
type NIC struct {
	Name string `json:"name"` // as in mlx5_0 or eth0
	PCI  string `json:"pci,omitempty"`
	NUMA string `json:"numa,omitempty"`
	// Links has how it is connected to each of the host's Devices.
	Links []Link `json:"links,omitempty"`
}

// Link is how two devices of a host are connected, as "nvidia-smi topo -m" shows it: NV and the
// number of NVLinks, or the kind of the path between them. It is empty if that is not known, or for
// a device and itself.
type Link string

// The links other than NVLinks, the closest first.
const (
	LinkPSB  Link = "PSB"  // on one board, or two halves of one
	LinkPIX  Link = "PIX"  // at most one PCIe bridge
	LinkPXB  Link = "PXB"  // several PCIe bridges, no host bridge
	LinkPHB  Link = "PHB"  // a PCIe host bridge, as a rule the CPU
	LinkNODE Link = "NODE" // several host bridges of one NUMA node
	LinkSYS  Link = "SYS"  // the connection between NUMA nodes
)

// Inventory is what the agents found: every host that may be used.
type Inventory struct {
	Hosts []Host `json:"hosts"`
}
