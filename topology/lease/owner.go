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
	// PID is the process that holds the lock. Start is when it began, in the clock ticks
	// since boot of /proc/PID/stat, so that a later process with the same PID is not
	// taken for it.
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	// Host is the machine's name, or the simulated host's.
	Host string `json:"host"`
	// Ranks are those of the run that the GPUs are for, where they are known.
	Ranks   []int  `json:"ranks,omitempty"`
	Command string `json:"command,omitempty"`
	// Since is when the GPU was taken, of a ticket when the gang began to wait.
	Since time.Time `json:"since"`
	// Until is when the job ends at the latest, zero where that is not known.
	Until time.Time `json:"until,omitzero"`
}

// String names the owner for people, as in "run r1 of ada (pid 12)".
func (o Owner) String() string {
	return fmt.Sprintf("run %s of %s (pid %d)", o.Run, o.User, o.PID)
}

// process returns an Owner that names this process.
func process(host, user string) Owner {
	o := Owner{UID: os.Geteuid(), PID: os.Getpid(), Host: host, User: user}
	if o.Host == "" {
		o.Host, _ = os.Hostname() // only for people
	}
	if o.User == "" {
		o.User = "uid " + strconv.Itoa(o.UID)
	}
	if p, err := procfs.ReadStat(o.PID); err == nil {
		o.Start = p.Start
	}
	return o
}
