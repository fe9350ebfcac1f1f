package job

// HealthSign is what is wrong with a host, or soon will be.
type HealthSign string

// The signs of health.
const (
	HealthMemory     HealthSign = "memory"      // the memory of the host or of a rank's control group runs out
	HealthDiskFull   HealthSign = "disk-full"   // a file system is full, or soon will be
	HealthSharedFull HealthSign = "shm-full"    // /dev/shm is full, or soon will be
	HealthDisk       HealthSign = "disk-errors" // the kernel reports errors of a disk or a file system
	HealthRAM        HealthSign = "ram-errors"  // EDAC or a machine check reports errors of the memory
	HealthCPU        HealthSign = "cpu"         // the kernel reports a lockup, or throttles the CPU
	HealthNIC        HealthSign = "nic"         // a network link went down or flaps
	HealthPCI        HealthSign = "pci"         // the kernel reports errors of a PCI device or of the link to it
	HealthFrozen     HealthSign = "fs-frozen"   // a file system does not answer
	HealthTask       HealthSign = "task-hung"   // the kernel reports a task that has hung
	HealthOOM        HealthSign = "oom"         // the kernel has killed a process for want of memory
)

// Health is a sign that something is wrong with a host, or soon will be.
type Health struct {
	Sign HealthSign `json:"sign"`
	// Severity is SeverityError if the work of ranks has failed because of the problem, or will fail as soon as
	// they need the broken part. gangrun does not end the gang because of it.
	Severity Severity `json:"severity"`
	// Ranks are the ranks that the sign concerns; nil means all ranks of the host.
	Ranks []int `json:"ranks,omitempty"`
	// Left is the time until a resource runs out at the present rate; 0 if that is not known.
	Left Duration `json:"left,omitempty"`
	// Count is how often the sign came, if it came more than once.
	Count int `json:"count,omitempty"`
}
