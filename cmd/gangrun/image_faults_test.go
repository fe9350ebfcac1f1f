package main_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/procfs"
)

// TestImageFaults kills processes that belong to a gang in containers. Nothing may be left, and the cause must be
// true.
func TestImageFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		break_ func(b imageBench, r *controlled) // if it is nil, the gang fails by itself
		code   int
		cause  string
	}{
		"a rank is killed":                           {break_: func(b imageBench, r *controlled) { r.strike(r.started(1, 1), unix.SIGKILL) }, code: 137, cause: "killed sigkill 1"},
		"the agent in a container is killed":         {break_: func(b imageBench, r *controlled) { killAll(b.t, b.inner()) }, code: 75, cause: "host-lost container-ended 0"},
		"the agent of the host is killed":            {break_: func(b imageBench, r *controlled) { killAll(b.t, r.tree().agents) }, code: 75, cause: "host-lost agent-gone 0"},
		"containerd's shim of a container is killed": {break_: func(b imageBench, r *controlled) { killAll(b.t, b.daemon.Shims()) }, code: 75, cause: "host-lost container-ended 0"},
		"containerd is killed and started again":     {break_: func(b imageBench, r *controlled) { b.daemon.Kill(); b.daemon.Restart(); b.create("end").Close() }},
		"containerd is killed":                       {break_: func(b imageBench, r *controlled) { b.daemon.Kill(); b.create("end").Close() }},
		"the controller is killed":                   {break_: func(b imageBench, r *controlled) { r.strike(r.cmd.Process.Pid, unix.SIGKILL) }, code: -1},
		// The agent raises the oom_score_adj of each rank, so that the kernel kills a rank before the agent. Rank 1
		// waits until the agent has done that. Otherwise the kernel would kill rank 0 first.
		"the ranks need more than `--container-memory`": {args: []string{"--container-memory", "40MiB", "--", "sh", "-c",
			"test $RANK = 1 || exec sleep 1000; until read adj < /proc/self/oom_score_adj && test $adj = 1000; do :; done; exec dd if=/dev/zero of=/dev/null bs=400M count=1"},
			code: 137, cause: "cpu-oom oom-killer 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newImageBench(t)
			if c.args == nil {
				c.args = []string{"--mount", b.dir, "--", "sh", "-c", "echo $RANK > /tmp/ready.$RANK; while test ! -e end; do sleep 0.05; done"}
			}
			r := b.start(nil, append([]string{"--image", b.image, "-n", "2", "--retries", "0", "--preflight", "off"}, c.args...)...)
			if c.break_ != nil {
				r.started(1, 0)
				r.started(1, 1)
				c.break_(b, r)
			}
			if code := r.finish(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			said := map[int]string{0: "the job goes on", -1: "the run is lost"}[c.code]
			if c.code > 0 {
				cause := b.report().Attempts[0].Cause
				said = fmt.Sprintf("`%s` (%s)", cause.Category, cause.Signature)
				if got := fmt.Sprint(cause.Category, " ", cause.Signature, " ", cause.Rank); got != c.cause {
					t.Errorf("cause %s, want %s: %s", got, c.cause, cause.Text)
				}
			}
			if name == "containerd is killed" { // containerd could not remove the container, so the next run does
				b.daemon.Restart()
				if code, said := b.run("-n", "1", "--preflight", "off", "--", "true"); code != 0 {
					t.Errorf("code %d:\n%s", code, said)
				}
			}
			b.nothingLeft()
			imageEndings.row(t, name, said, strings.Replace(fmt.Sprint(c.code), "-1", "137", 1), "0")
		})
	}
}

// TestImageMemoryFiles lets ranks fill the memory of their container with files in /dev/shm. Such files stay when the
// ranks are killed. The kernel may then kill the agent in the container, too, but the cause must be the same.
func TestImageMemoryFiles(t *testing.T) {
	t.Parallel()
	b := newImageBench(t)
	r := b.start(nil, "--image", b.image, "-n", "2", "--retries", "0", "--preflight", "off", "--container-memory", "40MiB", "--",
		"sh", "-c", "while :; do dd if=/dev/zero of=/dev/shm/$RANK bs=1M count=1000; done")
	if code := r.finish(); code == 0 {
		t.Error("exit code 0")
	}
	cause := b.report().Attempts[0].Cause
	t.Logf("%+v", cause)
	if cause == nil || cause.Category != job.CPUOOM {
		t.Errorf("cause %+v", cause)
	}
	b.nothingLeft()
}

// inner returns the PIDs of the agents in containers.
func (b imageBench) inner() (pids []int) {
	for below := b.daemon.Shims(); len(below) > 0; {
		pid := below[0]
		below = append(below[1:], procfs.Children(pid)...)
		if args := procfs.Args(pid); len(args) == 4 && args[0] == innerProgram && args[3] == "worker" {
			pids = append(pids, pid)
		}
	}
	return pids
}

func killAll(t testing.TB, pids []int) {
	t.Helper()
	if len(pids) == 0 {
		t.Error("there is nothing to kill")
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
