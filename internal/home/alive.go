package home

import (
	"errors"
	"io/fs"
	"os"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// Self describes the calling process as a run's controller. Fields that Self cannot find out
// stay empty. Alive then does not know whether the controller exists.
func Self() job.Controller {
	c := job.Controller{PID: os.Getpid()}
	c.Host, c.BootID = here()
	if p, err := procfs.ReadStat(c.PID); err == nil {
		c.Start = p.Start
	}
	return c
}

// Alive reports whether the controller still exists. known is false if the caller is on another
// machine or in another PID namespace than the controller.
func Alive(c job.Controller) (alive, known bool) {
	host, boot := here()
	if c.Host != host || c.Host == "" || c.BootID == "" || c.PID <= 0 || c.Start == 0 {
		return false, false
	}
	if c.BootID != boot {
		return false, boot != "" // the machine has been booted since then
	}
	p, err := procfs.ReadStat(c.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, true
	}
	if err != nil {
		return false, false
	}
	return p.Start == c.Start && !p.Ended(), true
}

// here returns this machine's name and the ID of its present boot.
func here() (host, boot string) {
	host, _ = os.Hostname()
	return host, procfs.BootID()
}
