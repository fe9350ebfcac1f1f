//go:build soak

package main_test

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/testseed"
)

// TestSoakMPIMatrix tries the whole matrix with ranks at different places in the gang.
func TestSoakMPIMatrix(t *testing.T) { mpiMatrix(t, false, 0, 2, 3) }

// TestSoakMPISignals sends signals to gangrun while its ranks start, and while they wait in a barrier.
func TestSoakMPISignals(t *testing.T) { mpiSignals(t, "hang-preinit", "hang-barrier") }

// TestSoakMPIHosts starts gangs of many ranks.
func TestSoakMPIHosts(t *testing.T) { mpiHosts(t, false, 2, 5, 16, 64) }

// TestSoakMPILeaks checks with COUNT gangs in a row that no memory leaks, for each flavour. Most of the gangs end well.
func TestSoakMPILeaks(t *testing.T) {
	good := slices.Repeat(mpiGangs[:1], len(mpiGangs))
	mpiLeaks(t, slices.Concat(mpiGangs, good), int(testseed.Number(t, "COUNT", 1000)))
}

// TestSoakMPIRuns has gangrun run COUNT gangs of each flavour in a row.
func TestSoakMPIRuns(t *testing.T) { mpiRuns(t, int(testseed.Number(t, "COUNT", 100))) }
