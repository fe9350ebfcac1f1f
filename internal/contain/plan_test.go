package contain

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const mountinfo = `21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw,nosuid - proc proc rw
23 21 0:21 / /sys rw - sysfs sysfs rw
24 21 0:5 / /dev rw,nosuid - devtmpfs udev rw
25 24 0:22 / /dev/pts rw - devpts devpts rw
26 24 0:23 / /dev/shm rw - tmpfs tmpfs rw
27 21 0:24 / /run rw - tmpfs tmpfs rw
28 21 0:40 / /home rw - nfs4 server:/home rw
29 28 0:41 / /home/ada/my\040data ro - nfs4 server:/data rw
30 21 0:42 / /usr ro - ext4 /dev/sda2 rw
31 21 0:43 / /srv rw - xfs /dev/sdb ro
32 21 254:1 /etc/resolv /etc/resolv.conf rw - ext4 /dev/sda1 rw
33 27 0:44 / /run/rpc rw - rpc_pipefs sunrpc rw
34 21 0:45 / /net rw - autofs auto.net rw
35 34 0:46 / /net/srv rw - nfs4 srv:/ rw
36 27 0:47 / /run/closed/x rw - tmpfs tmpfs rw
garbage
37 21 bad
`

func machine(t *testing.T) []mount {
	t.Helper()
	mounts, err := parseMounts(strings.NewReader(mountinfo))
	if err != nil || len(mounts) != 16 {
		t.Fatalf("%d mounts, %v", len(mounts), err)
	}
	for i := range mounts {
		mounts[i].file = mounts[i].point == "/etc/resolv.conf"
		mounts[i].hidden = mounts[i].point == "/run/closed/x"
	}
	return mounts
}

func texts(steps []step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, fmt.Sprintf("%s %s", s.action, s.path))
	}
	return out
}

func TestPlanOfRoot(t *testing.T) {
	steps, err := plan(machine(t), false, nil, func(dir string) ([]fs.DirEntry, error) {
		t.Errorf("%s was listed", dir)
		return nil, nil
	})
	want := []string{
		"overlay /", "bind all /dev", "file /etc/resolv.conf", "overlay /home", "bind /home/ada/my data",
		"directory /net", "overlay /net/srv", "bind all /proc", "overlay /run", "bind all /run/rpc", "bind /srv", "bind all /sys", "bind /usr",
	}
	if have := texts(steps); err != nil || !slices.Equal(have, want) {
		t.Errorf("got %q, %v\nwant %q", have, err, want)
	}
}

// TestPlanOfUser checks the plan in a user namespace. There, a directory above a mount is made anew. If the directory
// cannot be listed, it only has the mounts below it.
func TestPlanOfUser(t *testing.T) {
	tree := fstest.MapFS{
		"bin": {Mode: fs.ModeSymlink}, "vmlinuz": {}, "initctl": {Mode: fs.ModeNamedPipe},
		"proc/1/x": {}, "sys/x": {}, "dev/x": {}, "usr/x": {}, "srv/x": {}, "etc/passwd": {}, "etc/resolv.conf": {}, "etc/ssh/x": {},
		"run/x.pid": {}, "run/x.sock": {Mode: fs.ModeSocket}, "run/rpc/x": {}, "run/user/x": {}, "run/closed": {Mode: fs.ModeDir}, "net/srv/x": {},
		"home/ada/x": {}, "home/bob/x": {},
	}
	steps, err := plan(machine(t), true, []string{"/home/ada/run/x", "/home/ada/my data/y"}, func(dir string) ([]fs.DirEntry, error) {
		if dir == "/home/ada" || dir == "/run/closed" {
			return nil, fs.ErrPermission
		}
		if dir == "/" {
			return fs.ReadDir(tree, ".")
		}
		return fs.ReadDir(tree, dir[1:])
	})
	want := []string{
		"directory /", "link /bin", "bind all /dev",
		"directory /etc", "file /etc/passwd", "file /etc/resolv.conf", "overlay /etc/ssh",
		"directory /home", "directory /home/ada", "bind /home/ada/my data", "overlay /home/ada/run", "overlay /home/bob",
		"bind /initctl", "directory /net", "overlay /net/srv", "bind all /proc", "directory /run", "directory /run/closed", "bind all /run/rpc", "overlay /run/user", "file /run/x.pid", "bind /run/x.sock",
		"bind /srv", "bind all /sys", "bind /usr", "file /vmlinuz",
	}
	if have := texts(steps); err != nil || !slices.Equal(have, want) {
		t.Errorf("got %q, %v\nwant %q", have, err, want)
	}
}

func TestPlanIsBounded(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range most + 1 {
		tree[fmt.Sprintf("x%d", i)] = &fstest.MapFile{}
	}
	_, err := plan(machine(t), true, nil, func(string) ([]fs.DirEntry, error) { return fs.ReadDir(tree, ".") })
	if !errors.As(err, new(*Error)) || !strings.Contains(err.Error(), "too many entries") {
		t.Errorf("got %v", err)
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/a", "/", true}, {"/", "/a", false}, {"/a", "/a/b", false},
	} {
		if within(c.path, c.dir) != c.want {
			t.Errorf("within(%q, %q) is %v", c.path, c.dir, !c.want)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add(mountinfo)
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := parseMounts(strings.NewReader(text))
		if err != nil {
			return
		}
		if _, err := plan(mounts, false, nil, nil); err != nil {
			t.Errorf("a plan that lists nothing: %v", err)
		}
	})
}
