package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// TestFollowOpensLogsOnce checks that a command that follows a run does not open the logs again and again, even if it
// follows for long.
func TestFollowOpensLogsOnce(t *testing.T) {
	t.Parallel()
	const ranks, lines = 4, 20
	b := newBench(t)
	r := b.start(nil, "--preflight", "off", "--early-stop", "off", "--output", "all", "-n", fmt.Sprint(ranks), "--", "sh", "-c",
		fmt.Sprintf(`i=0; while test $i -lt %d; do until test -e line.$i; do sleep 0.01; done; echo line $i of $RANK; i=$((i+1)); done`, lines))
	r.journalled("the start of all ranks", func(e job.Event) bool { return e.Kind == job.KindAllStarted })
	followers := map[string]*exec.Cmd{}
	for name, args := range map[string][]string{"attach": {"attach"}, "logs": {"logs", "-f"}} {
		cmd := b.command(args...)
		out, errs := b.create(name+".out"), b.create(name+".err")
		defer out.Close()
		defer errs.Close()
		cmd.Stdout, cmd.Stderr = out, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		followers[name] = cmd
	}
	r.await("attach", func() bool { return strings.Contains(b.file("attach.err"), "is on its way") })
	// next makes every rank print a line, and waits until both followers have shown the lines.
	next := func(i int) {
		if err := os.WriteFile(filepath.Join(b.dir, fmt.Sprintf("line.%d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for name := range followers {
			r.await(fmt.Sprintf("line %d of %s", i, name), func() bool {
				shown := b.file(name + ".out")
				for rank := range ranks {
					if !strings.Contains(shown, fmt.Sprintf("line %d of %d\n", i, rank)) {
						return false
					}
				}
				return true
			})
		}
	}
	next(0)
	opens := watchOpens(t, b.dir)
	for i := 1; i < lines-1; i++ {
		next(i)
	}
	if n := opens(); n > ranks {
		t.Errorf("while %d lines of %d ranks were followed their logs were opened %d times", lines, ranks, n)
	}
	if err := os.WriteFile(filepath.Join(b.dir, fmt.Sprintf("line.%d", lines-1)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cmd := range followers {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", name, err, b.file(name+".err"))
		}
	}
	if code := r.finish(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for name := range followers {
		if n := strings.Count(b.file(name+".out"), "line "); n != ranks*lines {
			t.Errorf("%s has shown %d lines, want %d", name, n, ranks*lines)
		}
	}
}

// watchOpens starts to count how often files in the log directory of the first attempt are opened. The returned
// function returns the number so far.
func watchOpens(t *testing.T, dir string) func() int {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "home", "runs", "*", "attempts", "1"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %q, %v", logs, err)
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, logs[0], unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return func() (opens int) {
		buffer := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buffer)
			if errors.Is(err, unix.EAGAIN) {
				return opens
			}
			if err != nil {
				t.Fatal(err)
			}
			opens += bytes.Count(buffer[:n], []byte("rank-"))
		}
	}
}
