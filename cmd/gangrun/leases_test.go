package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/lease"
)

// TestLeasesArePrintable: names of files are other users' words.
func TestLeasesArePrintable(t *testing.T) {
	evil := "\x1b[31m\nroot"
	var out bytes.Buffer
	err := printLeases(&out, []lease.Listing{{Host: evil, Warnings: []string{evil}, Leases: []lease.Lease{
		{Device: evil, State: lease.StateHeld, Warning: evil, Owner: &lease.Owner{Run: evil, User: evil, Command: evil}},
	}}}, false, time.Now())
	if err != nil || strings.ContainsRune(out.String(), '\x1b') || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestMarkHeld: who holds a GPU is told before what runs on it, and what is wrong
// with other hosts is not this one's.
func TestMarkHeld(t *testing.T) {
	dir := leaseDir(t)
	small(t, dir, "", []string{"GPU0", "GPU1"}, "GPU0")
	small(t, dir, "h1", []string{"GPU1"}, "GPU1")
	if err := os.Mkdir(filepath.Join(dir, "gangrun.aa.order"), 0o777); err != nil {
		t.Fatal(err)
	}
	h := used(gpuHost("here", 3), 0, 2)
	findings, err := hostlist.MarkHeld(t.Context(), &h, nil)
	if err != nil || len(findings) != 0 {
		t.Errorf("%+v, %v", findings, err)
	}
	if got := []string{h.Devices[0].Busy, h.Devices[1].Busy, h.Devices[2].Busy}; !strings.HasPrefix(got[0], "held by run small-GPU0 of ada") || got[1] != "" || got[2] != "used by pid 7" {
		t.Errorf("busy are %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "gangrun.@.gpu.%0A"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if findings, err = hostlist.MarkHeld(t.Context(), &h, nil); err != nil || len(findings) != 1 || !strings.Contains(findings[0].Text, "cannot be printed") {
		t.Errorf("%+v, %v", findings, err)
	}
}

// leaseDir makes a directory of leases that everything in this test uses.
func leaseDir(t *testing.T) string {
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

// small takes one GPU of a host for a job that came after all others, nil where it
// has to wait.
func small(t *testing.T, dir, host string, devices []string, device string) *lease.Held {
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

// gpuHost is a host with so many GPUs that are all joined alike.
func gpuHost(name string, gpus int) job.Host {
	h := job.Host{Name: name, Slots: gpus}
	for i := range gpus {
		h.Devices = append(h.Devices, job.Device{UUID: fmt.Sprintf("GPU%d", i), Index: i})
	}
	return h
}

func used(h job.Host, devices ...int) job.Host {
	h.Devices = slices.Clone(h.Devices)
	for _, i := range devices {
		h.Devices[i].Busy = "used by pid 7"
	}
	return h
}
