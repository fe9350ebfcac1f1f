package procfs

import "slices"

// wrappers are programs that start other programs and only wait for their end, by the names of their main threads.
var wrappers = []string{"sh", "bash", "dash", "zsh", "ksh", "busybox", "timeout", "sudo", "env", "nice", "time", "strace", "script"}

// IsWrapper reports whether a program of that name only starts other programs and waits for them.
func IsWrapper(name string) bool { return slices.Contains(wrappers, name) }

// Spent returns the clock ticks that the process and the children that it has waited for have spent.
func (s Stat) Spent() uint64 { return s.User + s.System + s.Waited }
