package job

// Host is one machine, or one pretended host, that can hold ranks.
type Host struct {
	Name string `json:"name"`
	// Address is what the other ranks connect to.
	Address string `json:"address"`
	// Slots is the number of ranks that the host takes; Hard slots are a limit
	// that the user stated, others a wish derived from the host's cores.
	Slots   int      `json:"slots"`
	Hard    bool     `json:"hard,omitempty"`
	Cores   int      `json:"cores,omitempty"`
	Memory  int64    `json:"memory,omitempty"` // bytes
	Devices []Device `json:"devices,omitempty"`
}

// Device is one GPU of a host.
type Device struct {
	UUID  string `json:"uuid"`
	Index int    `json:"index"`
	Name  string `json:"name,omitempty"`
}

// Inventory is what the agents found: every host that may be used.
type Inventory struct {
	Hosts []Host `json:"hosts"`
}
