//go:build soak

package main_test

import "testing"

// TestSoakScripts runs the scripts with the test binary as gangrun. Under "go test -race", that gangrun has the race
// detector.
func TestSoakScripts(t *testing.T) { scripts(t, setUp) }
