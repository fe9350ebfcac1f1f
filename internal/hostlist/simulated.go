package hostlist

import "fmt"

// Simulated returns the names of n simulated hosts on this machine: h1 to hN.
func Simulated(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("h%d", i+1))
	}
	return names
}
