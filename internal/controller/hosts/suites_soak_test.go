//go:build soak

package hosts

import (
	"testing"

	"github.com/gangrun/gangrun/launcher/suite"
)

// TestSoakStepSuite runs all tests of the suite over the servers of a job.
func TestSoakStepSuite(t *testing.T) { suite.Run(t, newStepBed(t).suiteBed()) }

// TestSoakPodSuite runs all tests of the suite over kubectl.
func TestSoakPodSuite(t *testing.T) { suite.Run(t, podBed(t)) }
