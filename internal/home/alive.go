package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Self returns the calling process as a run's controller. What cannot be found
// out stays empty, so that Alive knows nothing of it.
func Self() job.Controller {
	c := job.Controller{PID: os.Getpid()}
	c.Host, c.BootID = here()
	if _, start, err := stat(c.PID); err == nil {
		c.Start = start
	}
	return c
}

// Alive reports whether the controller still exists. It is known on the
// controller's own machine only, and in its PID namespace.
func Alive(c job.Controller) (alive, known bool) {
	host, boot := here()
	if c.Host != host || c.Host == "" || c.BootID == "" || c.PID <= 0 || c.Start == 0 {
		return false, false
	}
	if c.BootID != boot {
		return false, boot != "" // the machine has been started anew
	}
	state, start, err := stat(c.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, true
	}
	if err != nil {
		return false, false
	}
	return start == c.Start && state != "Z" && state != "X", true
}

// here returns this machine's name and the ID of its present boot.
func here() (host, boot string) {
	host, _ = os.Hostname()
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return host, strings.TrimSpace(string(id))
}

// stat returns a process's state and its start time in clock ticks after boot,
// fields 3 and 22 of /proc/PID/stat. Field 2, the program's name in
// parentheses, may hold anything.
func stat(pid int) (state string, start uint64, err error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	content, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	if len(fields) < 20 {
		return "", 0, fmt.Errorf("%s holds %q", path, content)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0], start, err
}
