package job

// ImageFact is what a host reports about the image of a job.
type ImageFact struct {
	Name     string `json:"name"`               // the full name of the image in the host's store
	Digest   string `json:"digest,omitempty"`   // the digest of its manifest
	Platform string `json:"platform,omitempty"` // as in "linux/amd64"
	Bytes    int64  `json:"bytes,omitempty"`    // the stored size of its layers
	Runtime  string `json:"runtime,omitempty"`  // as in "containerd 1.6.20"
	// Sent is set if the controller has sent the image to the host for this run.
	Sent   bool `json:"sent,omitempty"`
	Pulled bool `json:"pulled,omitempty"` // the host has pulled it from its registry for this run
	// Problem is why the host cannot start a container from the image. Error says more.
	Problem ImageProblem `json:"problem,omitempty"`
	Error   string       `json:"error,omitempty"`
	// Others are programs on the host that run images without containerd. It is set only if the host
	// has no containerd.
	Others []string `json:"others,omitempty"`
	// If this user may not use containerd, Group is the group that may use it; empty if the group is not known.
	Group string `json:"group,omitempty"`
}

// ImageProblem is why a host cannot start containers from an image.
type ImageProblem string

// The problems.
const (
	ImageNoRuntime ImageProblem = "no-runtime" // there is no containerd
	ImageForbidden ImageProblem = "forbidden"  // this user may not use containerd
	ImageMissing   ImageProblem = "missing"    // neither the host nor the registry has it
	ImageUnpulled  ImageProblem = "unpulled"   // the host does not have it, and cannot pull it
	ImageRefused   ImageProblem = "refused"    // the registry refuses to give it out
	ImagePlatform  ImageProblem = "platform"   // the image is for other machines
	ImageBroken    ImageProblem = "broken"     // the archive is not a complete image
	ImageFull      ImageProblem = "full"       // the host's store has no room
	ImageMount     ImageProblem = "mount"      // a mount that the user names is missing
	ImageDevice    ImageProblem = "device"     // no GPUs can be given to containers
	ImageEntry     ImageProblem = "entry"      // its entry point cannot be executed
	ImageNoUser    ImageProblem = "no-user"    // the image names a user whom it does not have
	ImageRootless  ImageProblem = "rootless"   // a rootless containerd cannot do what the job needs
	ImageFailed    ImageProblem = "failed"     // containerd refuses the container, or any other error
)
