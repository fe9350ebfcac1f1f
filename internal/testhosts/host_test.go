package testhosts

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/noskip"
)

func TestKillIsHeard(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	s := openSession(t, b, h)
	must(t, h.Kill())
	s.hear("")
}

func TestPoweroffIsSilentAndBootIsNew(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	const bootID = "cat /proc/sys/kernel/random/boot_id"
	before := ssh(t, b, h, bootID)
	ssh(t, b, h, "touch /tmp/mark /root/mark /run/mark /dev/shm/mark /srv/mark /var/log/mark; mkdir -p /sys/fs/cgroup/unified/a/b /sys/fs/cgroup/a/b; true")
	s := openSession(t, b, h)
	must(t, h.Poweroff())
	s.tell("there?")
	b.finds(t, "h1", "silent")
	s.silent()
	must(t, h.Boot())
	if after := ssh(t, b, h, bootID); after == before {
		t.Errorf("the boot ID is still %s", after)
	}
	ssh(t, b, h, "test -e /srv/mark && test -e /var/log/mark")
	ssh(t, b, h, "ls /tmp/mark /root/mark /run/mark /dev/shm/mark 2>/dev/null | wc -l | grep -qx 0")
	s.hear("") // the host does not know the connection, and resets it
}

func TestFreeze(t *testing.T) {
	for freezer, options := range map[string][]Option{"cgroup.freeze": nil, "SIGSTOP": {noCgroup}} {
		t.Run(freezer, func(t *testing.T) {
			b := Up(t, 2, options...)
			if got := b.Freezer(); got != freezer {
				noskip.Skip(t, "hosts are frozen by %s: root can make no cgroup of version 2 here", got)
			}
			h := b.Host(1)
			s := openSession(t, b, h)
			done := make(chan error, 1)
			go func() {
				_, err := h.Exec(context.Background(), "cat", b.Shared()+"/fifo")
				done <- err
			}()
			on(t, h, "sh", "-c", "mkfifo "+b.Shared()+"/fifo 2>/dev/null; true")
			must(t, h.Freeze())
			s.tell("there?")
			// The kernel accepts the connection, but sshd does not send its greeting.
			out, err := b.Controller().Exec(t.Context(), "bash", "-c", "exec 3<>/dev/tcp/h1/22; echo open; read -r -t 0.5 -u 3; echo $? $REPLY")
			if strings.TrimSpace(out) != "open\n142" || err != nil { // 128 and SIGALRM: read has timed out
				t.Errorf("a host that is frozen says %q, %v", out, err)
			}
			if _, err := h.Exec(t.Context(), "true"); err == nil || err.Error() != "host h1 is frozen: thaw it first" {
				t.Errorf("a command on it: %v", err)
			}
			ssh(t, b, b.Host(2), "true")
			s.silent()
			must(t, h.Thaw())
			s.hear("there?")
			ssh(t, b, h, "true")
			must(t, h.Freeze())
			must(t, h.Kill())
			<-done // the command has ended in some way
			must(t, h.Boot())
			ssh(t, b, h, "true")
			must(t, h.Freeze()) // the bed is closed in this state
		})
	}
}

func TestProcesses(t *testing.T) {
	b := Up(t, 2)
	h := b.Host(1)
	ssh(t, b, h, "BED_MARK=1 setsid sleep 1000 >/dev/null 2>&1 </dev/null & BED_MARK=2 setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
	var found []Process
	must(t, eventually(func() (_ bool, err error) {
		found, err = h.Processes("BED_MARK=1")
		return len(found) == 1 && found[0].Name == "sleep", err
	}))
	if got := strings.Join(found[0].Args, " "); got != "sleep 1000" {
		t.Errorf("it is %q", got)
	}
	if all, err := h.Processes(""); err != nil || len(all) < 5 {
		t.Errorf("all are %v, %v", all, err)
	}
	if other, err := b.Host(2).Processes("BED_MARK"); err != nil || len(other) > 0 {
		t.Errorf("the other host has %v, %v", other, err)
	}
	must(t, signal(found[0].PID, 9))
	must(t, eventually(func() (bool, error) {
		found, err := h.Processes("BED_MARK=1")
		return len(found) == 0, err
	}))
	// The first process of the host must reap orphans.
	must(t, eventually(func() (bool, error) {
		out, err := h.Exec(t.Context(), "ps", "-e", "-o", "stat=")
		return !strings.Contains(out, "Z"), err
	}))
}

func TestCommandEndsWithItsContext(t *testing.T) {
	b := Up(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cmd, err := b.Host(1).Command(ctx, "env", "BED_MARK=1", "sleep", "1000")
	must(t, err)
	must(t, cmd.Start())
	marked := func(want int) func() (bool, error) {
		return func() (bool, error) {
			found, err := b.Host(1).Processes("BED_MARK=1")
			return len(found) == want, err
		}
	}
	must(t, eventually(marked(1)))
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
	must(t, eventually(marked(0)))
}

func TestDisks(t *testing.T) {
	b := Up(t, 1)
	h := b.Host(1)
	for _, dir := range []string{"/tmp", "/root"} {
		must(t, h.Fill(dir))
		if out, err := h.Exec(t.Context(), "bash", "-c", "echo more >"+dir+"/mark"); err == nil || !strings.Contains(out, "No space left on device") {
			t.Errorf("%s takes more: %v, %s", dir, err, out)
		}
		must(t, h.Drain(dir))
		on(t, h, "sh", "-c", "echo more >"+dir+"/mark")
	}
	must(t, h.Remount("/root", "noexec"))
	if _, err := h.Exec(t.Context(), "sh", "-c", "cp /bin/true /root/true && /root/true"); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("a program in a home mounted noexec: %v", err)
	}
	must(t, h.Remount("/root", "ro"))
	if _, err := h.Exec(t.Context(), "touch", "/root/more"); err == nil || !strings.Contains(err.Error(), "Read-only file system") {
		t.Errorf("writing to a home mounted read-only: %v", err)
	}
	must(t, h.Remount("/root", "rw,exec"))
	on(t, h, "/root/true")
}

func TestNoHostHasAKey(t *testing.T) {
	b := Up(t, 2)
	h := b.Host(1)
	if got := on(t, h, "ls", "-A", b.dir); got != "shared" {
		t.Errorf("of the bed's files, the host sees %q", got)
	}
	if _, err := os.Stat(b.Controller().Key("id_ed25519")); err != nil {
		t.Fatal(err)
	}
	out, err := h.Exec(t.Context(), "ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "h2", "true")
	if err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("ssh from host to host: %v, %s", err, out)
	}
}
