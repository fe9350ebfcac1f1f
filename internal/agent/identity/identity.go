package identity

import (
	"os"
	"strings"
)

// Machine is what tells this machine, or the container that this process is in, from
// every other: the boot, and the PID namespace. It is empty where either is not known.
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
