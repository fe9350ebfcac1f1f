package job

// Host is one machine, or one simulated host, that can hold ranks.
type Host struct {
	Name string `json:"name"`
	// Address is what the other ranks connect to.
	Address string `json:"address"`
	// Interface has Address, and Network is the CIDR of its network, where the gang
	// is on several machines.
	Interface string `json:"interface,omitempty"`
	Network   string `json:"network,omitempty"`
	// Slots is the number of ranks that the host takes; Hard slots are a limit
	// that the user stated, others a preference derived from the host's cores.
	Slots  int   `json:"slots"`
	Hard   bool  `json:"hard,omitempty"`
	Cores  int   `json:"cores,omitempty"`
	Memory int64 `json:"memory,omitempty"` // bytes
	// Rack and Switch say where the host is; hosts of which neither is known are
	// all in one place.
	Rack    string   `json:"rack,omitempty"`
	Switch  string   `json:"switch,omitempty"`
	Devices []Device `json:"devices,omitempty"`
	// Links holds, for each pair of Devices, how they are connected; nil where
	// nothing is known. It is symmetric, and its diagonal is empty.
	Links [][]Link `json:"links,omitempty"`
	NICs  []NIC    `json:"nics,omitempty"`
}

// Device is one GPU of a host, or one MIG instance.
type Device struct {
	// UUID is the driver's, or GPU and the index where it tells none.
	UUID  string `json:"uuid"`
	Index int    `json:"index"`
	Name  string `json:"name,omitempty"`
	// GPU is the UUID of the GPU that a MIG instance is part of.
	GPU    string `json:"gpu,omitempty"`
	PCI    string `json:"pci,omitempty"`    // bus id, as in 0000:3b:00.0
	Memory int64  `json:"memory,omitempty"` // bytes
	CPUs   string `json:"cpus,omitempty"`   // list of the CPUs close to it, as in 0-15,32-47
	NUMA   string `json:"numa,omitempty"`   // number of its NUMA node, empty when it is not known
	// Busy says who uses it, and Sick what is wrong with it; both are empty where a
	// gang may use it.
	Busy string `json:"busy,omitempty"`
	Sick string `json:"sick,omitempty"`
}

// NIC is a network interface that GPUs may send through.
type NIC struct {
	Name string `json:"name"` // as in mlx5_0 or eth0
	PCI  string `json:"pci,omitempty"`
	NUMA string `json:"numa,omitempty"`
	// Links holds how it is connected to each of the host's Devices.
	Links []Link `json:"links,omitempty"`
}

// Link is how two devices of a host are connected, in the words of "nvidia-smi
// topo -m": NV and the number of NVLinks, or the nearest thing that the path
// between them goes through. Empty is not known, or a device itself.
type Link string

// The links but NVLinks, the nearest first.
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
