//go:build soak

package main_test

import "testing"

// TestSoakScripts runs the scripts with the test binary as gangrun: under "go test -race", with the race detector.
func TestSoakScripts(t *testing.T) { scripts(t, setUp) }
