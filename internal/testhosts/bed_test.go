package testhosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary serve as a process that has a bed and is killed.
func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		os.Exit(victim())
	}
	goleak.VerifyTestMain(m)
}

// noCgroup makes a bed behave as on a machine where it cannot make control groups.
func noCgroup(s *settings) { s.noCgroup = true }

// ssh runs a command on a host with the controller's ssh.
func ssh(t *testing.T, b *Bed, h *Host, command string) string {
	t.Helper()
	out, err := b.Controller().Exec(t.Context(), "ssh", h.Name(), command)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// on runs a command on a host without SSH.
func on(t *testing.T, h *Host, argv ...string) string {
	t.Helper()
	out, err := h.Exec(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHostsAreMachinesOfTheirOwn(t *testing.T) {
	b := Up(t, 4)
	own, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	boots := []string{strings.TrimSpace(string(own))}
	for i, h := range b.Hosts() {
		if b.Host(i+1) != h || h.Addr().String() != fmt.Sprintf("10.77.0.%d", i+1) {
			t.Errorf("host %d is %s at %v", i+1, h.Name(), h.Addr())
		}
		got := strings.Split(ssh(t, b, h, `cat /proc/sys/kernel/random/boot_id
			hostname; id -un; pwd; ls /sys/class/net | tr '\n' ' '; echo
			ip -4 -o addr show eth0 | grep -o 'inet [^ ]*'
			getent hosts h1 ctl | tr -s ' '; id -u alice bob
			for dir in /tmp /var/tmp /run /dev/shm /root /srv /var/log; do
				test ! -e $dir/mark && touch $dir/mark || echo $dir is shared
			done
			hostname >>`+b.Shared()+`/all`), "\n")
		boots = append(boots, got[0])
		want := []string{h.Name(), "root", "/root", "eth0 lo ", "inet " + h.Addr().String() + "/24", "10.77.0.1 h1", "10.77.0.254 ctl", "7001", "7002"}
		if !slices.Equal(got[1:], want) {
			t.Errorf("%s says of itself %q, want %q", h.Name(), got[1:], want)
		}
	}
	if slices.Sort(boots); len(slices.Compact(boots)) != 5 {
		t.Errorf("boot IDs are not all different: %q", boots)
	}
	if got := on(t, b.Host(4), "cat", b.Shared()+"/all"); got != "h1\nh2\nh3\nh4" {
		t.Errorf("the last host finds %q in the shared directory", got)
	}
	if _, err := os.Stat(filepath.Join(b.Host(2).Disk(), "mark")); err != nil {
		t.Error("this process does not see the host's disk:", err)
	}
}

func TestOptions(t *testing.T) {
	b := Up(t, 2, SecondNetwork(), Docker0(), SharedHome())
	h := b.Host(2)
	out, err := b.Controller().Exec(t.Context(), "ssh", h.SecondAddr().String(), "ip -4 -o addr; touch ~/mark")
	must(t, err)
	for _, want := range []string{"10.77.0.2/24", "10.78.0.2/24", "docker0    inet 172.17.0.1/16"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not among the addresses:\n%s", want, out)
		}
	}
	must(t, h.Poweroff())
	must(t, h.Boot())
	ssh(t, b, b.Host(1), "test -e ~/mark")
	ssh(t, b, h, "test -e ~/mark")
	must(t, h.Cut())
	b.finds(t, h.SecondAddr().String(), "silent")
}

func TestTwoBedsDoNotMeet(t *testing.T) {
	a, b := Up(t, 2), Up(t, 2)
	must(t, a.Host(1).Poweroff())
	if got := ssh(t, b, b.Host(1), "echo here"); got != "here" {
		t.Errorf("the other bed's h1 says %q", got)
	}
	if a.Shared() == b.Shared() {
		t.Error("they share", a.Shared())
	}
	must(t, a.Close())
	must(t, a.Close()) // must do nothing
	if got := ssh(t, b, b.Host(2), "echo here"); got != "here" {
		t.Errorf("after the end of the one, the other's h2 says %q", got)
	}
	if _, err := os.Stat(a.dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", a.dir, err)
	}
	if _, err := os.Stat(a.cgroup); !os.IsNotExist(err) && a.cgroup != "" {
		t.Errorf("%s is still there: %v", a.cgroup, err)
	}
}

func TestWhatCannotBe(t *testing.T) {
	if err := able(1000); err == nil || !strings.Contains(err.Error(), "only root can simulate hosts: run it as root") {
		t.Errorf("another user than root is told %v", err)
	}
	Need(t)
	for _, n := range []int{-1, 0, maxHosts + 1} {
		if _, err := New(n); err == nil || !strings.Contains(err.Error(), "take 1 to 200") {
			t.Errorf("a bed of %d hosts: %v", n, err)
		}
	}
	b := Up(t, 1)
	h := b.Host(1)
	if err := h.Boot(); err == nil || err.Error() != "host h1 is on" {
		t.Errorf("booting a host that is on: %v", err)
	}
	if err := h.Loss(101); err == nil {
		t.Error("101 percent can be lost")
	}
	if err := h.Rate("fast"); err == nil || h.line.rate != "" {
		t.Errorf("a rate that is none: %v, and the line has the rate %q", err, h.line.rate)
	}
	if _, err := h.Exec(t.Context(), "false"); err == nil || !strings.HasPrefix(err.Error(), "on h1: false: exit status 1") {
		t.Errorf("a command that fails: %v", err)
	}
	must(t, h.Kill())
	for name, err := range map[string]error{"kill": h.Kill(), "poweroff": h.Poweroff(), "freeze": h.Freeze(), "thaw": h.Thaw()} {
		if err == nil || err.Error() != "host h1 is off: boot it first" {
			t.Errorf("%s of a host that is off: %v", name, err)
		}
	}
	if _, err := h.Exec(t.Context(), "true"); err == nil {
		t.Error("a command runs on a host that is off")
	}
	if found, err := h.Processes(""); err != nil || len(found) > 0 || h.Init() != 0 {
		t.Errorf("a host that is off has the processes %v, %v", found, err)
	}
}
