package lease

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/procfs"
)

// Owner describes the process that holds a GPU or waits for GPUs.
type Owner struct {
	Run  string `json:"run"`
	User string `json:"user"`
	UID  int    `json:"uid"`
	// PID is the process that holds the lock. Start is when that process began, in clock ticks
	// since boot, as in /proc/PID/stat. Start distinguishes the process from a later process
	// with the same PID.
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	// Host is the name of this machine or of a simulated host.
	Host string `json:"host"`
	// Ranks are the ranks that use the GPUs, if they are known.
	Ranks   []int  `json:"ranks,omitempty"`
	Command string `json:"command,omitempty"`
	// Since is when the holder took the GPU or, in a ticket, when the gang began to wait.
	Since time.Time `json:"since"`
	// Until is the time at which the job ends at the latest. It is zero if the job has no time
	// limit.
	Until time.Time `json:"until,omitzero"`
}

// String returns the owner's name for messages, as in "run r1 of ada (pid 12)".
func (o Owner) String() string {
	return fmt.Sprintf("run %s of %s (pid %d)", o.Run, o.User, o.PID)
}

// process returns an Owner that describes this process.
func process(host, user string) Owner {
	o := Owner{UID: os.Geteuid(), PID: os.Getpid(), Host: host, User: user}
	if o.Host == "" {
		o.Host, _ = os.Hostname() // only shown in messages
	}
	if o.User == "" {
		o.User = "uid " + strconv.Itoa(o.UID)
	}
	if p, err := procfs.ReadStat(o.PID); err == nil {
		o.Start = p.Start
	}
	return o
}
