package job

// GPUSign is what is seen of a GPU that a gang uses, or of its driver.
type GPUSign string

// The signs.
const (
	GPUXID        GPUSign = "xid"             // an error that the driver numbers
	GPUECCSingle  GPUSign = "ecc-single"      // an error of its memory that was corrected
	GPUECCDouble  GPUSign = "ecc-double"      // one that could not be
	GPUDriverHung GPUSign = "gpu-driver-hung" // the driver does not answer; of no GPU alone
	GPUShared     GPUSign = "gpu-shared"      // several ranks use it, and some of them not their own
	GPUUnwatched  GPUSign = "gpu-unwatched"   // it is not told of, or no longer; without a UUID, none is
)

// GPU is what is seen of a GPU, or MIG instances of it, that ranks of a gang hold.
type GPU struct {
	Sign GPUSign `json:"sign"`
	// UUID is that of the whole GPU; empty where it is not known, or none alone.
	UUID string `json:"uuid,omitempty"`
	PCI  string `json:"pci,omitempty"` // bus id, as in 0000:3b:00.0
	// XID is NVIDIA's number of the error; 0 for other signs.
	XID int `json:"xid,omitempty"`
	// Ranks are those that hold the GPU, in order; empty where that is not known. Of
	// GPUShared they are those that use it.
	Ranks []int `json:"ranks,omitempty"`
	// Count is how often the same was seen, where events were left out; 0 is once.
	Count int `json:"count,omitempty"`
}
