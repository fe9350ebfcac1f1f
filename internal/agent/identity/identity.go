// Package identity names this machine, and the agents on it, apart from all others.
package identity

import (
	"os"
	"strings"
)

// Machine returns a name that only this machine, or the container that this process is in, has
// until it is booted anew: its boot ID and its PID namespace. It is empty where either is not
// known.
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
