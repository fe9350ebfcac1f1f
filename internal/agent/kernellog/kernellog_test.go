package kernellog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

const (
	mountsV1 = `22 27 0:20 / /proc rw,nosuid shared:5 - proc proc rw
30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:8 - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
`
	mountsHybrid = mountsV1 + `32 30 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate
33 30 0:29 / /sys/fs/cgroup/systemd rw,nosuid shared:11 - cgroup cgroup rw,xattr,name=systemd
`
	mountsV2 = `22 27 0:20 / /proc rw,nosuid shared:5 - proc proc rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	mountsContainer = `1520 1519 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
`
	ownV1     = "12:cpu,cpuacct:/user.slice\n1:name=systemd:/user.slice/session-1.scope\n"
	ownHybrid = ownV1 + "0::/user.slice/session-1.scope\n"
	ownV2     = "0::/user.slice/user-1000.slice/session-1.scope\n"
)

func TestKernelRecord(t *testing.T) {
	for _, c := range []struct{ name, record, want string }{
		{"killed", "3,1234,98765432,-;Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB, UID:1000 pgtables:1kB oom_score_adj:0\n SUBSYSTEM=x\n",
			"Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB, UID:1000 pgtables:1kB oom_score_adj:0"},
		{"memory cgroup", "3,1,2,-;Memory cgroup out of memory: Killed process 4711 (python3)\n", "Memory cgroup out of memory: Killed process 4711 (python3)"},
		{"constraint", "6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python3,pid=4711,uid=0\n", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python3,pid=4711,uid=0"},
		{"segfault", "6,1,2,-;python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libtorch.so[7f+1]\n", "python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libtorch.so[7f+1]"},
		{"general protection", "4,1,2,-;traps: python3[4711] general protection fault ip:7f\n", "traps: python3[4711] general protection fault ip:7f"},
		{"GPU", "4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.\n", "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."},
		{"GPU, without its number", "4,1,2,-;NVRM: GPU at PCI:0000:3b:00 has fallen off the bus.\n", "NVRM: GPU at PCI:0000:3b:00 has fallen off the bus."},
		{"semicolons in the text", "3,1,2,-,caller=T1;Killed process 1; and 2\n", "Killed process 1; and 2"},
		{"no line end", "3,1,2,-;Killed process 1", "Killed process 1"},
		{"not UTF-8", "3,1,2,-;Killed process 1 (a\xffb)\n", "Killed process 1 (a\uFFFDb)"},
		{"something else", "6,1,2,-;eth0: link up\n", ""},
		{"only a property tells", "6,1,2,-;eth0: link up\n TEXT=Killed process 1\n", ""},
		{"no record", "Killed process 1\n", ""},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := recordText(c.record)
			if ok = ok && evidence(got); ok != (c.want != "") || ok && got != c.want {
				t.Errorf("got %q, %t; want %q", got, ok, c.want)
			}
		})
	}
}

func FuzzKernelRecord(f *testing.F) {
	for _, record := range []string{"3,1,2,-;Out of memory: Killed process 1 (x)\n K=v\n", ";", "", "oom-kill:;oom-kill:", "3;segfault at \xff\n"} {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record string) {
		text, ok := recordText(record)
		if ok == (text == "") {
			t.Fatalf("%q: got %q, %t", record, text, ok)
		}
		if !utf8.ValidString(text) || strings.Contains(text, "\n") || len(text) > 3*len(record) {
			t.Fatalf("%q: %q is no line of text", record, text)
		}
	})
}

// TestKernelLines checks that lines of the kernel's log, and an increased count, are reported once.
func TestKernelLines(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_DIRECT); err != nil { // as with /dev/kmsg, a read gives one record
		t.Fatal(err)
	}
	log := os.NewFile(uintptr(fds[1]), "kmsg")
	for _, record := range []string{"3,1,2,-;Killed process 1 (x)\n", "6,2,3,-;eth0: link up\n", "6,3,4,-;x[2]: segfault at 0\n"} {
		if _, err := log.WriteString(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	kills, file := oomKills()
	k := &Watch{log: &Log{fds[0]}, kills: kills - 2}
	defer k.Close()
	said := func() (texts []string) {
		for _, line := range k.Lines("h1", nil) {
			if line.Source != job.SourceKernel || line.Host != "h1" || line.Rank != -1 || line.Time.IsZero() {
				t.Errorf("got the line %+v, want one of h1's kernel and of no rank", line)
			}
			texts = append(texts, line.File+" "+line.Text)
		}
		return texts
	}
	want := "[/dev/kmsg Killed process 1 (x) /dev/kmsg x[2]: segfault at 0 " + file + " oom_kill count rose by 2 during the attempt]"
	if got := fmt.Sprint(said()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := said(); len(got) != 0 {
		t.Errorf("the kernel has said nothing since, but there is %q", got)
	}
}

// TestWatchKernel checks that watching works for every user. If the log may not be read, there are no lines.
func TestWatchKernel(t *testing.T) {
	k := Start()
	defer k.Close()
	if k.log.fd < -1 || k.kills < 0 {
		t.Errorf("watches %+v", k)
	}
}

const (
	memoryV1   = "32 30 0:28 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n"
	memoryInV1 = "32 30 0:28 /docker/4711 /sys/fs/cgroup/memory ro master:16 - cgroup cgroup rw,memory\n"
)

func TestOOMFiles(t *testing.T) {
	for _, c := range []struct{ name, own, mounts, want string }{
		{"version 2", ownV2, mountsV2, "[/sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope/memory.events]"},
		{"container, version 2", "0::/\n", mountsContainer, "[/sys/fs/cgroup/memory.events]"},
		{"version 1", "9:memory:/user.slice\n1:name=systemd:/x\n", mountsV1 + memoryV1, "[/sys/fs/cgroup/memory/user.slice/memory.oom_control]"},
		{"container, version 1", "9:memory:/docker/4711\n", memoryInV1, "[/sys/fs/cgroup/memory/memory.oom_control]"},
		{"hybrid", ownHybrid + "9:memory:/m\n", mountsHybrid + memoryV1,
			"[/sys/fs/cgroup/unified/user.slice/session-1.scope/memory.events /sys/fs/cgroup/memory/m/memory.oom_control]"},
		{"no memory controller", ownV1, mountsV1, "[]"},
		{"nothing", "", "", "[]"},
		{"cut short", "0::", "30 23 0:26 / - cgroup2\n", "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(oomFiles(c.own, c.mounts)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func FuzzOOMFiles(f *testing.F) {
	f.Add(ownHybrid, mountsHybrid)
	f.Add("9:memory:/docker/4711\n", memoryInV1)
	f.Add("0::/../..", mountsV2)
	f.Fuzz(func(t *testing.T, own, mounts string) {
		for _, file := range oomFiles(own, mounts) {
			if name := filepath.Base(file); name != "memory.events" && name != "memory.oom_control" {
				t.Fatalf("%q and %q: %q", own, mounts, file)
			}
		}
	})
}

func TestOOMCount(t *testing.T) {
	for text, want := range map[string]string{
		"low 0\noom 3\noom_kill 2\noom_group_kill 1\n": "2 true",
		"oom_kill 7":              "7 true",
		"oom_kill_disable 0\n":    "0 false",
		"oom_kill many\n":         "0 false",
		"pgfault 1\noom_kill 0\n": "0 true",
		"":                        "0 false",
	} {
		if n, ok := oomCount(text); fmt.Sprint(n, ok) != want {
			t.Errorf("%q: got %d, %t; want %s", text, n, ok, want)
		}
	}
}
