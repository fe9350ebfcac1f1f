package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// killAgents kills the agents of a host and their watchdogs at the same time, so that nothing on the host cleans up.
func killAgents(t *testing.T, h *testhosts.Host) {
	t.Helper()
	all, err := h.Processes("")
	agents := slices.DeleteFunc(all, func(p testhosts.Process) bool {
		return len(p.Args) < 3 || p.Args[0] == innerProgram || p.Args[1] != "agent"
	})
	if err != nil || len(agents) != 3 {
		t.Fatalf("on %s there are the agents %v, %v", h.Name(), agents, err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, p := range agents {
			err = errors.Join(err, syscall.Kill(p.PID, signal))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// onHost returns what a program on a host prints.
func onHost(t *testing.T, h *testhosts.Host, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := h.Exec(ctx, argv...)
	if err != nil {
		t.Errorf("%s: %v\n%s", h.Name(), err, out)
	}
	return strings.TrimSpace(out)
}

// TestHostsClean checks that gangrun clean removes what two runs have left on hosts: a container and its image, and
// processes.
func TestHostsClean(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 3, testhosts.Containerd())
	// On h3, another user runs the agent. The agents of other tests on this machine could otherwise end the processes
	// that are left.
	ctl := bed.Controller()
	config, err := os.ReadFile(ctl.SSHConfig())
	if err == nil {
		config = append([]byte("Host h3\n\tUser alice\n\tIdentityFile "+ctl.Key("id_alice")+"\n\tIdentitiesOnly yes\nHost *\n\tConnectTimeout 30\n"), config...)
		err = os.WriteFile(ctl.SSHConfig(), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--retries", "0", "--orphan-grace", "2s", "--workdir", bed.Shared()}
	boxed := startFarCommand(t, bed, "h1:1,h2:1", 2, job.MPINone, []string{"sh", "-c", ": > boxed.$RANK; exec sleep 1000"}, append(imageFlags(t, bed), flags...)...)
	bare := startFarCommand(t, bed, "h3:1", 1, job.MPINone, []string{"sh", "-c", detached + "exec sleep 1000"}, flags...)
	for _, name := range []string{"boxed.0", "boxed.1", "ready.0"} {
		if !boxed.await(name, func() bool { _, err := os.Stat(filepath.Join(bed.Shared(), name)); return err == nil }) {
			t.Fatal("gangrun has ended")
		}
	}
	for _, r := range []*farRun{boxed, bare} {
		_ = syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.exited
	}
	killAgents(t, bed.Host(2))
	killAgents(t, bed.Host(3))
	left := onHost(t, bed.Host(2), "ctr", "-n", "gangrun", "containers", "ls", "-q")
	if left == "" || strings.Contains(left, "\n") {
		t.Fatalf("on h2 there are the containers %q", left)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if left, err := bed.Host(1).ContainersLeft(); err == nil && len(left) == 0 {
			break // the agent on h1 has ended
		}
	}

	code, out, errs := boxed.ask(boxed.gangrun, "clean", "--hosts", "h1,h2,h3", "--older", "0s", "-o", "json")
	var all []job.Cleaned
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 || len(all) != 3 {
		t.Fatalf("code %d, %v\n%s%s", code, err, out, errs)
	}
	if got := all[1].Containers; len(got) != 1 || got[0].ID != left || !strings.HasSuffix(got[0].Gang, "/1") || len(all[0].Containers) != 0 {
		t.Errorf("the containers removed are %+v and %+v, want %s on h2", all[0].Containers, got, left)
	}
	for _, c := range all[:2] {
		if len(c.Images) != 1 || c.Images[0].Bytes == 0 || time.Since(c.Images[0].Used) > time.Hour {
			t.Errorf("%s: the images removed are %+v", c.Host, c.Images)
		}
	}
	shell := func(p job.CleanedProcess) bool { return p.Name == "sh" && strings.HasSuffix(p.Gang, "/1") }
	if !slices.ContainsFunc(all[2].Processes, shell) || len(all[2].Left) != 0 {
		t.Errorf("on h3 was ended: %+v", all[2])
	}
	noContainers(t, bed)
	for _, h := range bed.Hosts() {
		if images := onHost(t, h, "ctr", "-n", "gangrun", "images", "ls", "-q"); images != "" {
			t.Errorf("%s has the images %s", h.Name(), images)
		}
		if processes, err := h.Processes("GANGRUN_RUN="); err != nil || len(processes) > 0 {
			t.Errorf("%s has %v, %v", h.Name(), processes, err)
		}
	}

	if code, out, errs := boxed.ask(boxed.gangrun, "clean", "--hosts", "h1,h2,h3"); code != 0 || out != "h1: nothing was left\nh2: nothing was left\nh3: nothing was left\n" {
		t.Errorf("once more: code %d\n%s%s", code, out, errs)
	}
	if err := bed.Host(2).Poweroff(); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := boxed.ask(boxed.gangrun, "clean", "--hosts", "h1,h2"); code != 75 || out != "h1: nothing was left\n" || !strings.Contains(errs, "what dead runs have left on h2 may be there still") {
		t.Errorf("without h2: code %d\n%s%s", code, out, errs)
	}
}

// TestCleanUsage checks that gangrun clean refuses arguments that do not fit together.
func TestCleanUsage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for said, args := range map[string][]string{
		"leave out --dry-run":   {"--hosts", "localhost", "--dry-run"},
		"leave out the RUNs":    {"--hosts", "localhost", "some-run"},
		"--hosts names nothing": {"--hosts", ""},
	} {
		code, out := b.ends(b.command(append([]string{"clean"}, args...)...))
		if code != 64 || !strings.Contains(out, said) {
			t.Errorf("%q: code %d\n%s", args, code, out)
		}
	}
	if code, out := b.ends(b.command("clean", "--hosts", "localhost")); code != 0 || !strings.Contains(out, "localhost: ") {
		t.Errorf("this machine: code %d\n%s", code, out)
	}
}
