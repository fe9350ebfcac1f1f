package job

// GPUSign is a sign of trouble with a GPU that a gang uses, or with its driver.
type GPUSign string

// The signs.
const (
	GPUXID        GPUSign = "xid"             // an error that the driver reports with a number (see GPU.XID)
	GPUECCSingle  GPUSign = "ecc-single"      // a memory error that was corrected
	GPUECCDouble  GPUSign = "ecc-double"      // a memory error that could not be corrected
	GPUDriverHung GPUSign = "gpu-driver-hung" // the driver does not answer; this concerns all GPUs
	GPUShared     GPUSign = "gpu-shared"      // several ranks use it, although it was not given to all of them
	GPULost       GPUSign = "gpu-lost"        // the driver can no longer reach it
	GPURemap      GPUSign = "gpu-remap"       // rows or pages of its memory are broken, and some are still in use
	GPUThrottled  GPUSign = "gpu-throttled"   // its clocks have been lowered for long
	GPUPCILink    GPUSign = "gpu-pci-link"    // its PCIe link is slower than it could be, under load
	GPUNVLink     GPUSign = "gpu-nvlink"      // its NVLinks have errors
	GPURecovery   GPUSign = "gpu-recovery"    // the driver says that the GPU must be reset, or the host rebooted
	GPUForeign    GPUSign = "gpu-foreign"     // a process that does not belong to the gang computes on it
	// gangrun cannot, or can no longer, learn of errors of the gang's GPUs on the host.
	GPUUnwatched GPUSign = "gpu-unwatched"
)

// GPU is a sign of trouble with a GPU of a gang. The gang may have the whole GPU, or MIG instances
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
	// Bucket is what NVIDIA advises to do about the XID; empty for other signs.
	Bucket XIDBucket `json:"bucket,omitempty"`
	// Severity is SeverityError if ranks that use the GPU fail, or will fail. gangrun does not end the gang
	// because of it. It is empty in journals of older versions of gangrun.
	Severity Severity `json:"severity,omitempty"`
	// Count is the number of equal events that gangrun reports as this one; 0 means one.
	Count int `json:"count,omitempty"`
}

// Serious reports whether the sign is more than a note.
func (g GPU) Serious() bool {
	switch {
	case g.Severity != "":
		return g.Severity != SeverityNote
	case g.Sign == GPUECCSingle, g.Sign == GPUUnwatched, g.Sign == GPUShared:
		return false
	}
	return true
}

// XIDBucket is what NVIDIA's catalogue of XID errors gives as the immediate action.
type XIDBucket string

// The buckets.
const (
	XIDUnknown    XIDBucket = "unknown"     // the catalogue does not have the number
	XIDIgnore     XIDBucket = "ignore"      // IGNORE: for information
	XIDRestartApp XIDBucket = "restart-app" // RESTART_APP: the program has failed; the GPU need not be broken
	XIDResetGPU   XIDBucket = "reset-gpu"   // RESET_GPU: the GPU must be reset
	XIDRestart    XIDBucket = "restart"     // RESTART_BM, RESTART_VM: the host must be restarted
	XIDInspect    XIDBucket = "inspect"     // CHECK_MECHANICALS: power or cables must be checked
	XIDUpdate     XIDBucket = "update"      // UPDATE: the driver or firmware must be updated
	XIDWorkflow   XIDBucket = "workflow"    // what to do depends on other errors that came together with this one
)
