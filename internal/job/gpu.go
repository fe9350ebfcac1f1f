package job

// GPUSign is a sign of trouble with a GPU that a gang uses, or with its driver.
type GPUSign string

// The signs.
const (
	GPUXID        GPUSign = "xid"             // an error with a number of the driver
	GPUECCSingle  GPUSign = "ecc-single"      // a memory error that was corrected
	GPUECCDouble  GPUSign = "ecc-double"      // a memory error that could not be corrected
	GPUDriverHung GPUSign = "gpu-driver-hung" // the driver does not answer; it concerns all GPUs
	GPUShared     GPUSign = "gpu-shared"      // several ranks use it, and not all of them hold it
	GPUUnwatched  GPUSign = "gpu-unwatched"   // the driver does not, or no longer, report its errors; without a UUID, those of no GPU
)

// GPU is a sign of trouble with a GPU, or with MIG instances of it, that ranks of a gang hold.
type GPU struct {
	Sign GPUSign `json:"sign"`
	// UUID is that of the whole GPU; empty if it is not known, or if it is not about one GPU.
	UUID string `json:"uuid,omitempty"`
	PCI  string `json:"pci,omitempty"` // bus id, as in 0000:3b:00.0
	// XID is NVIDIA's number of the error; 0 for other signs.
	XID int `json:"xid,omitempty"`
	// Ranks are those that hold the GPU, in order; empty if that is not known. For GPUShared,
	// they are those that use it.
	Ranks []int `json:"ranks,omitempty"`
	// Count is how many equal events this one stands for; 0 is one.
	Count int `json:"count,omitempty"`
}
