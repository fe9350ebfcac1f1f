//go:build soak

package main_test

import "testing"

// TestSoakNoInodes makes the file system run out of inodes at every moment of a run, with and without a preflight.
func TestSoakNoInodes(t *testing.T) {
	for _, dir := range []string{"home", "TMPDIR"} {
		for _, preflight := range []string{"full", "off"} {
			t.Run(dir+"/"+preflight, func(t *testing.T) {
				t.Parallel()
				noInodes(t, dir, preflight)
			})
		}
	}
}
