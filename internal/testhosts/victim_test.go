package testhosts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/noskip"
)

// victimEnv makes the test binary a process that makes a bed, prints what belongs to the bed, and waits until it is
// killed.
const victimEnv = "GANGRUN_TESTHOSTS_VICTIM"

// remains has everything that must not be left of a bed.
type remains struct {
	Dir     string
	Cgroups []string
	Keeper  int
	Lockers []int // the processes, other than the keeper, that hold the lock of the bed
	PIDs    []int
}

func victim() int {
	var options []Option
	switch os.Getenv(victimEnv) {
	case "SIGSTOP":
		options = append(options, noCgroup)
	case "containerd":
		options = append(options, Containerd())
	}
	r, err := bury(options)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var forever chan struct{}
	for range forever {
	}
	return 0
}

// bury makes a bed that is hard to remove. It has a frozen host, and processes that have left their sessions, on a
// host and on the controller.
func bury(options []Option) (remains, error) {
	b, err := New(2, options...)
	if err != nil {
		return remains{}, err
	}
	r := remains{Dir: b.dir, Cgroups: append(b.v1, b.cgroup), Keeper: b.keeper.Process.Pid, PIDs: []int{b.fabric, b.Host(1).Init(), b.Host(2).Init()}}
	unshare, err := onlyChild(r.Keeper, 1) // the parent of the fabric's process also has the descriptors of the keeper
	if err != nil {
		return r, err
	}
	r.Lockers = []int{unshare, b.fabric}
	const detach = "BED_MARK=1 setsid sleep 1000 >/dev/null 2>&1 </dev/null &"
	if _, err := b.Controller().Exec(context.Background(), "sh", "-c", detach); err != nil {
		return r, err
	}
	if _, err := b.Controller().Exec(context.Background(), "ssh", "h1", detach); err != nil {
		return r, err
	}
	for _, list := range []func(string) ([]Process, error){b.Controller().Processes, b.Host(1).Processes} {
		err := eventually(func() (bool, error) {
			found, err := list("BED_MARK=1")
			if len(found) == 1 {
				r.PIDs = append(r.PIDs, found[0].PID)
			}
			return len(found) == 1, err
		})
		if err != nil {
			return r, err
		}
	}
	if b.containerd != "" {
		const run = `mkdir -p /srv/root/bin && cp /bin/busybox /srv/root/bin && ctr run --detach --rootfs /srv/root box /bin/busybox sleep 1001`
		if _, err := b.Host(1).Exec(context.Background(), "sh", "-c", run); err != nil {
			return r, err
		}
		// The process of the container is the only child of the shim.
		shims, err := b.Host(1).Shims()
		if err != nil || len(shims) != 1 {
			return r, fmt.Errorf("there are the shims %v, %w", shims, err)
		}
		box, err := onlyChild(shims[0].PID, 1)
		if err != nil {
			return r, err
		}
		r.PIDs = append(r.PIDs, shims[0].PID, box)
	}
	return r, b.Host(1).Freeze()
}

func TestKilledTestLeavesNothing(t *testing.T) {
	for _, freezer := range []string{"cgroup.freeze", "SIGSTOP", "containerd"} {
		t.Run(freezer, func(t *testing.T) {
			r := startVictim(t, freezer, func(remains) {})
			must(t, eventually(func() (bool, error) { return gone(r.Keeper) && r.left() == "", nil }))
		})
	}
}

// TestNextBedSweeps also kills the keeper of a bed. The next bed must then remove what the keeper would have removed.
func TestNextBedSweeps(t *testing.T) {
	r := startVictim(t, "cgroup.freeze", func(r remains) {
		must(t, syscall.Kill(r.Keeper, syscall.SIGKILL))
		must(t, eventually(func() (bool, error) { return gone(r.Keeper), nil }))
		// From now on, any other process that makes a bed may remove this one.
		if _, err := os.Stat(r.Dir); err != nil {
			t.Fatalf("there is nothing to sweep: %v", err)
		}
	})
	must(t, eventually(func() (bool, error) {
		return !slices.ContainsFunc(r.Lockers, func(pid int) bool { return !gone(pid) }), nil
	}))
	Up(t, 1)
	if left := r.left(); left != "" {
		t.Errorf("left is %s", left)
	}
}

// startVictim starts a process with a bed and kills it. It returns what belonged to the bed.
func startVictim(t *testing.T, freezer string, before func(remains)) remains {
	t.Helper()
	Need(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+freezer)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var r remains
	must(t, json.NewDecoder(stdout).Decode(&r))
	want := 5
	if freezer == "containerd" {
		want = 7
	}
	if left := r.left(); r.Dir == "" || len(r.PIDs) != want || strings.Count(left, "process ") != want {
		t.Fatalf("the bed is not whole: %+v, %s", r, left)
	}
	before(r)
	must(t, cmd.Process.Kill())
	if freezer == "cgroup.freeze" && r.Cgroups[0] == "" {
		noskip.Skip(t, "root can make no cgroup of version 2 here")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process with the bed ended well")
	}
	return r
}

// left returns what is left, or "" if nothing is.
func (r remains) left() string {
	var left []string
	for _, path := range append(r.Cgroups, r.Dir) {
		if _, err := os.Stat(path); path != "" && err == nil {
			left = append(left, path)
		}
	}
	for _, pid := range r.PIDs {
		if !gone(pid) {
			left = append(left, fmt.Sprintf("process %d", pid))
		}
	}
	return strings.Join(left, ", ")
}

// gone reports whether a process has ended, even if it was not reaped yet.
func gone(pid int) bool {
	_, ok := process(fmt.Sprintf("/proc/%d", pid))
	return !ok
}
