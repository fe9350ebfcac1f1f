//go:build soak

package main_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSoakKilledTogether kills every combination of the processes of a run, in every phase and with every MPI library.
// Nothing of the job may be left, and no two attempts may run at the same time.
func TestSoakKilledTogether(t *testing.T) {
	soakTogether(t, []string{"preflight", "launch", "running", "stopping"}, together.inject)
}

// TestSoakHostsKilledTogether does the same to gangs on hosts that are reached over SSH.
func TestSoakHostsKilledTogether(t *testing.T) {
	soakTogether(t, []string{"running"}, together.injectFar)
}

func soakTogether(t *testing.T, phases []string, inject func(together, *testing.T) time.Duration) {
	var mu sync.Mutex
	slowest, count := map[string]time.Duration{}, 0
	places := make(chan struct{}, atOnce)
	t.Run("all", func(t *testing.T) {
		for _, phase := range phases {
			for _, flavour := range append([]job.MPI{job.MPINone}, mpiFlavours...) {
				for set := 1; set < 1<<len(allVictims); set++ {
					k := together{phase: phase, flavour: flavour}
					for i, victim := range allVictims {
						if set&(1<<i) != 0 {
							k.victims = append(k.victims, victim)
						}
					}
					if k.has("runtime") && flavour != job.MPIOpenMPI {
						continue
					}
					t.Run(k.name(), func(t *testing.T) {
						t.Parallel()
						places <- struct{}{}
						defer func() { <-places }()
						gone := inject(k, t)
						mu.Lock()
						defer mu.Unlock()
						slowest[phase] = max(slowest[phase], gone)
						count++
					})
				}
			}
		}
	})
	t.Logf("%d sets of processes were killed; the slowest job was gone after %v", count, slowest)
}
