package main_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestAttachLeaseLost checks that gangrun notices when an adopted gang has lost a lease, and ends the gang. The next
// attempt has new leases.
func TestAttachLeaseLost(t *testing.T) {
	t.Parallel()
	needPython(t, "json")
	r := startTally(t, rand.New(rand.NewPCG(2, 2)), tallyOptions{timeout: patience, grace: patience, held: true})
	r.stepped(1)
	r.journalled(job.KindAllStarted, 1)
	r.killController(r.cmd)
	<-r.exited
	r.control("attach")
	r.journalled(job.KindAttached, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := r.bed.Host(1).Exec(ctx, "find", "/run/lock", "/dev/shm", "-name", "gangrun.@.gpu*", "-print", "-delete")
	if err != nil || !strings.Contains(out, "gangrun.@.gpu") {
		t.Fatalf("leases of h1: %q, %v", out, err)
	}
	r.stepped(2)
	r.release()
	if code := r.finish(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	report := r.report()
	if len(report.Attempts) != 2 || report.State != job.StateSucceeded {
		t.Fatalf("%s after %d attempts", report.State, len(report.Attempts))
	}
	if c := report.Attempts[0].Cause; c == nil || c.Signature != "lease-lost" || !strings.Contains(c.Text, "on h1: ") {
		t.Errorf("the first attempt died of %+v", c)
	}
	r.nobodyLeft()
}
