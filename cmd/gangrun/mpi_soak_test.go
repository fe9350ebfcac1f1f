//go:build soak

package main_test

import "testing"

// TestSoakMPIMatrix has every rank misbehave that has another place in a gang.
func TestSoakMPIMatrix(t *testing.T) { mpiMatrix(t, 0, 2, 3) }

// TestSoakMPISignals ends gangrun while its ranks start, and while they wait.
func TestSoakMPISignals(t *testing.T) { mpiSignals(t, "hang-preinit", "hang-barrier") }

// TestSoakMPIHosts starts gangs of many ranks.
func TestSoakMPIHosts(t *testing.T) { mpiHosts(t, 2, 5, 16, 64) }
