package job

// GPUSign is a sign of trouble with a GPU that a gang uses, or with its driver.
type GPUSign string

// The signs.
const (
	GPUXID        GPUSign = "xid"             // an error with one of the driver's numbers
	GPUECCSingle  GPUSign = "ecc-single"      // a memory error that was corrected
	GPUECCDouble  GPUSign = "ecc-double"      // a memory error that could not be corrected
	GPUDriverHung GPUSign = "gpu-driver-hung" // the driver does not answer; it concerns all GPUs
	GPUShared     GPUSign = "gpu-shared"      // several ranks use it, and it was not given to all of them
	GPUUnwatched  GPUSign = "gpu-unwatched"   // gangrun does not, or no longer, learn of errors of the gang's GPUs on the host
)

// GPU is a sign of trouble with a GPU of a gang. The gang may have the whole GPU, or MIG slices
// of it.
type GPU struct {
	Sign GPUSign `json:"sign"`
	// UUID is the UUID of the whole GPU. It is empty if it is not known, or if the sign is not
	// about one GPU.
	UUID string `json:"uuid,omitempty"`
	PCI  string `json:"pci,omitempty"` // bus id, as in 0000:3b:00.0
	// XID is NVIDIA's number of the error; 0 for other signs.
	XID int `json:"xid,omitempty"`
	// Ranks are the ranks to which the GPU belongs, in order; empty if they are not known. For
	// GPUShared, they are the ranks that use it.
	Ranks []int `json:"ranks,omitempty"`
	// Count is the number of equal events that gangrun reports as this one; 0 means one.
	Count int `json:"count,omitempty"`
}

// Serious reports whether the sign is more than a note.
func (g GPU) Serious() bool {
	switch g.Sign {
	case GPUECCSingle, GPUUnwatched, GPUShared:
		return false
	}
	return true
}
