package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/topology/lease"
)

// TestLeasesArePrintable checks that gangrun leases prints no control characters. Other users choose the names of the
// files in the directory of leases.
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
