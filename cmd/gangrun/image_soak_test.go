//go:build soak

package main_test

import (
	"slices"
	"testing"
)

// TestSoakImageFaults makes every fault of hosts and of containers happen to gangs in containers.
func TestSoakImageFaults(t *testing.T) {
	places := make(chan struct{}, atOnce)
	for _, f := range slices.Concat(hostFaults, imageFaults) {
		for _, program := range imagePrograms() {
			t.Run(f.name+"/"+program.name, func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				t.Logf("%+v", f.try(t, program, measured))
			})
		}
	}
}
