// Package leasetest has helpers for tests of packages that use leases.
package leasetest

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/lease"
)

// Dir makes a directory of leases and returns its path. Everything in this process uses that directory until
// the test ends.
func Dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gangrun-place-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Setenv(lease.Env, dir)
	return dir
}

// Small takes the GPU device of a host for a job that has come after all others. It returns nil if the job has
// to wait.
func Small(t *testing.T, dir, host string, devices []string, device string) *lease.Held {
	t.Helper()
	space, err := lease.Open(dir, host)
	if err != nil {
		t.Fatal(err)
	}
	turn := space.Turn()
	defer turn.Close()
	held, _, err := turn.Try(t.Context(), lease.Request{
		Ticket: lease.Ticket{Run: "small-" + host + device, Since: time.Now(), Devices: devices, Count: 1, Least: 1},
		Take:   []string{device}, User: "ada",
	})
	if err != nil {
		t.Fatal(err)
	}
	if held != nil {
		t.Cleanup(func() { held.Release() })
	}
	return held
}

// Host returns a host with that number of GPUs. Every pair of them has the same kind of link.
func Host(name string, gpus int) job.Host {
	h := job.Host{Name: name, Slots: gpus}
	for i := range gpus {
		h.Devices = append(h.Devices, job.Device{UUID: fmt.Sprintf("GPU%d", i), Index: i})
	}
	return h
}

// Used returns the host with some devices marked as in use by a process.
func Used(h job.Host, devices ...int) job.Host {
	h.Devices = slices.Clone(h.Devices)
	for _, i := range devices {
		h.Devices[i].Busy = "used by pid 7"
	}
	return h
}
