// Package identity has unique names for this machine and for the agents on it.
package identity

import (
	"os"
	"strings"
)

// Machine returns a name that is unique to this machine, or to the container of this process, until the next
// boot: the boot ID and the PID namespace. It returns "" if either is not known.
func Machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}
