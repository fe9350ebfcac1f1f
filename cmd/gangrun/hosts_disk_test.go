package main_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/supervisor/exitcode"
)

// TestHostWithoutInodes checks that a host without free inodes does not count as unreachable. The inodes may be
// missing for gangrun's program, for the directory of the agent, or for the log of a rank.
func TestHostWithoutInodes(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 1)
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	run := func() (code int, said string) {
		r := &farRun{t: t, bed: bed, gangrun: gangrun}
		r.control("run", "--hosts", "h1:2", "-n", "2", "--workdir", "/", "--preflight", "off", "--retries", "0", "--", "echo", "hello")
		return r.finish(), r.errs.String()
	}
	mount := func(inodes string, dirs ...string) {
		t.Helper()
		if out, err := bed.Host(1).Exec(ctx, append([]string{"sh", "-c", `inodes=$1; shift; cd; for d; do mkdir -p "$d" && mount -t tmpfs -o nr_inodes=$inodes none "$d" || exit 1; done`, "sh", inodes}, dirs...)...); err != nil {
			t.Fatal(err, out)
		}
	}
	unmount := func(dirs ...string) {
		t.Helper()
		if out, err := bed.Host(1).Exec(ctx, append([]string{"sh", "-c", `cd; for d; do umount --lazy "$d" || exit 1; done`, "sh"}, dirs...)...); err != nil {
			t.Fatal(err, out)
		}
	}
	agents := []string{"/tmp", "/var/tmp", "/dev/shm"}
	try := func(name string, inodes int, path string, dirs ...string) (code int) {
		t.Helper()
		mount(fmt.Sprint(inodes), dirs...)
		defer unmount(dirs...)
		code, said := run()
		if code == 0 {
			return 0
		}
		if code != exitcode.MayPass && code != exitcode.Failed {
			t.Errorf("%s, %d inodes: exit code %d", name, inodes, code)
		}
		for _, want := range []string{"disk-full", path, "o space left on device", "hint"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s, %d inodes: gangrun did not say %q", name, inodes, want)
			}
		}
		for _, wrong := range []string{"no host can be reached", "host-lost", "launch-error"} {
			if strings.Contains(said, wrong) {
				t.Errorf("%s, %d inodes: gangrun said %q", name, inodes, wrong)
			}
		}
		if t.Failed() {
			t.Fatalf("gangrun said:\n%s", said)
		}
		return code
	}
	if try("the program", 1, ".cache/gangrun", append([]string{".cache"}, agents...)...) == 0 {
		t.Error("gangrun is on the host, where there is no room for it")
	}
	for inodes := 1; try("the agent's directory and the logs", inodes, "/tmp/gangrun-", agents...) != 0; inodes++ {
		if inodes == 50 {
			t.Fatal("no number of inodes is enough")
		}
	}
}
