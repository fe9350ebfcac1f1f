//go:build soak

package main

import (
	"testing"
	"time"
)

// TestSoakFailures runs all jobs.
func TestSoakFailures(t *testing.T) {
	runJobs(t, 20*time.Second)
}
