package job

import "time"

// Cleaned lists what dead runs had left on a host: what gangrun has removed, and what it could not remove.
type Cleaned struct {
	Host       string             `json:"host"`
	Processes  []CleanedProcess   `json:"processes,omitempty"`
	Containers []CleanedContainer `json:"containers,omitempty"`
	// Leases is the number of removed leases of containerd. Dirs is the number of removed directories that
	// gangrun had made for containers.
	Leases int            `json:"leases,omitempty"`
	Dirs   int            `json:"dirs,omitempty"`
	Images []CleanedImage `json:"images,omitempty"`
	// Left has the processes that SIGKILL has not ended.
	Left []CleanedProcess `json:"left,omitempty"`
	// Problem is why gangrun could not look at everything on the host. Hint says what to do about it.
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Nothing reports whether there was nothing to remove.
func (c Cleaned) Nothing() bool {
	return len(c.Processes)+len(c.Containers)+len(c.Images)+len(c.Left)+c.Leases+c.Dirs == 0
}

// CleanedProcess is a process that a gang has left behind.
type CleanedProcess struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`           // the name of its program
	State string `json:"state"`          // a letter from /proc/PID/stat
	Gang  string `json:"gang,omitempty"` // RUN/ATTEMPT
}

// CleanedContainer is a container that an agent has left behind.
type CleanedContainer struct {
	ID   string `json:"id"`
	Gang string `json:"gang"` // RUN/ATTEMPT or RUN/survey
}

// CleanedImage is an image that gangrun had brought to the host.
type CleanedImage struct {
	Name  string    `json:"name"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"used"` // when it was last used
}
