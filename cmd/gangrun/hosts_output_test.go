package main_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestControllerDiskFull fills the disk of the controller while ranks print. gangrun must wait for room, but not for
// ever. In the end it must say where the hosts keep the complete output.
func TestControllerDiskFull(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r := &farRun{t: t, bed: bed, gangrun: filepath.Join(bed.Shared(), "gangrun.sh")}
	small := filepath.Join(bed.Controller().Home(), "small")
	text := fmt.Sprintf("#!/bin/sh\nmkdir %[1]s && mount -t tmpfs -o size=200k small %[1]s && GANGRUN_HOME=%[1]s/home exec %[2]s \"$@\"\n", small, gangrun)
	writeProgram(t, r.gangrun, []byte(text))
	t.Cleanup(func() { // otherwise, the bed could not remove the home
		if _, err := bed.Controller().Exec(context.Background(), "umount", small); err != nil {
			t.Error(err)
		}
	})
	const lines = 60_000
	var want strings.Builder
	for i := range lines {
		fmt.Fprintln(&want, i+1)
	}
	r.control("run", "--hosts", "h1:1,h2:1", "-n", "2", "--mpi", "none", "--preflight", "off", "--output", "none", "--", "seq", fmt.Sprint(lines))
	if code := r.finish(); code != 1 {
		t.Errorf("gangrun ended with %d", code)
	}
	said := r.errs.String()
	for _, word := range []string{
		"a log cannot be written, its rank's output waits on its host: ", "no space left on device; free space in " + small, "or end gangrun with Ctrl-C twice",
		"disk-full (no-space)", "; the rest is kept for 7 days on h1 in ", "; the rest is kept for 7 days on h2 in ",
	} {
		if !strings.Contains(said, word) {
			t.Errorf("it did not say %q", word)
		}
	}
	for rank := range 2 {
		_, dir, _ := strings.Cut(said, fmt.Sprintf("; the rest is kept for 7 days on h%d in ", rank+1))
		dir, _, _ = strings.Cut(dir, "\n")
		got, err := bed.Host(rank+1).Exec(context.Background(), "cat", fmt.Sprintf("%s/rank-%04d.out", dir, rank))
		if err != nil || got != want.String() {
			t.Errorf("rank %d: %d bytes are kept, %v; want %d", rank, len(got), err, want.Len())
		}
	}
	if t.Failed() {
		t.Logf("gangrun said:\n%s", said)
	}
}

// TestHostDiskFullAtTheEnd checks that ranks count as failed if their output could not be kept. They exit with code 0
// before the agent has noticed that.
func TestHostDiskFullAtTheEnd(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	if err := bed.Host(2).Fill("/tmp"); err != nil {
		t.Fatal(err)
	}
	r := startFarCommand(t, bed, "h1:2,h2:2", 4, job.MPINone, []string{"echo", "something"}, "--retries", "0")
	if code := r.finish(); code != 1 {
		t.Errorf("gangrun ended with %d", code)
	}
	if c := r.report().Attempts[0].Cause; c == nil || c.Category != job.DiskFull || c.Host != "h2" || !strings.Contains(c.Text, "no space left on device") {
		t.Errorf("the cause is %+v", c)
	}
	if err := bed.Host(2).Drain("/tmp"); err != nil {
		t.Fatal(err)
	}
	r.nothingLeft()
}
