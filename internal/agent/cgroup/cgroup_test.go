package cgroup

import (
	"bufio"
	"strings"
	"testing"
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

func mountOf(text string) string { return cgroup2Mount(bufio.NewScanner(strings.NewReader(text))) }

func TestCgroup2(t *testing.T) {
	for _, c := range []struct{ name, mounts, own, root, path string }{
		{"version 1", mountsV1, ownV1, "", ""},
		{"hybrid", mountsHybrid, ownHybrid, "/sys/fs/cgroup/unified", "/user.slice/session-1.scope"},
		{"version 2", mountsV2, ownV2, "/sys/fs/cgroup", "/user.slice/user-1000.slice/session-1.scope"},
		{"container", mountsContainer, "0::/\n", "/sys/fs/cgroup", "/"},
		{"without the last line feed", strings.TrimSpace(mountsV2), "0::/a b", "/sys/fs/cgroup", "/a b"},
		{"version 2 by name only", "30 23 0:26 / /mnt rw - ext4 cgroup2 rw\n", "10::/x\n", "", ""},
		{"cut short", "30 23 0:26 - cgroup2 cgroup2 rw\n", "0:", "", ""},
		{"nothing", "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mountOf(c.mounts); got != c.root {
				t.Errorf("mounted at %q, want %q", got, c.root)
			}
			got, ok := cgroup2Path(c.own)
			if got != c.path || ok != (c.path != "") {
				t.Errorf("the process is in %q, %t; want %q", got, ok, c.path)
			}
		})
	}
}

func FuzzCgroup2(f *testing.F) {
	for _, mounts := range []string{mountsV1, mountsHybrid, mountsV2, mountsContainer, "a b c d e - cgroup2 ", " - cgroup2 "} {
		f.Add(mounts, ownHybrid)
		f.Add(mounts, "0::")
	}
	f.Fuzz(func(t *testing.T, mounts, own string) {
		if root := mountOf(mounts); root != "" && (!strings.Contains(mounts, " "+root) && !strings.Contains(mounts, root+" ") || !strings.Contains(mounts, " - cgroup2 ") || strings.ContainsAny(root, " \n")) {
			t.Fatalf("%q: mounted at %q", mounts, root)
		}
		if path, ok := cgroup2Path(own); !ok && path != "" || ok && !strings.Contains(own, "0::"+path) {
			t.Fatalf("%q: the process is in %q, %t", own, path, ok)
		}
	})
}

// TestNoCgroup checks that all methods do nothing if there is no control group.
func TestNoCgroup(t *testing.T) {
	var none *Group
	if fd, ok := none.fd(); ok || fd >= 0 {
		t.Errorf("there is no cgroup, but descriptor %d", fd)
	}
	none.Kill()
	none.Close()
}
