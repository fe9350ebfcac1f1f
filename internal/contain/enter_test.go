package contain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// attack is a Python program that writes wherever it can: by absolute paths, through links, a mapping, a bind mount,
// shared memory and a socket, and to files in the home directory. It fails if it cannot do what it could do outside a
// view.
const attack = `
import ctypes, mmap, os, shutil, socket, subprocess, sys, tempfile
work, home, elsewhere, name = sys.argv[1:]
assert open("data").read() == "as it was\n"
open("data", "a").write("more\n")
open(work + "/new", "w").write("x")
open(elsewhere + "/file2", "w").write("x")
open("symlink", "w").write("through a symbolic link\n")
open("hardlink", "a").write("through a hard link\n")
os.link("data", "link")
with open("sub/old", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0); m[:2] = b"AS"; m.flush(); m.close()
assert open("sub/old").read().startswith("AS")
open("../bound/file", "a").write("through a bind mount\n")
open(home + "/.profile", "a").write("x"); os.makedirs(home + "/.cache/x")
shutil.rmtree("sub"); os.mkdir("sub"); open("sub/other", "w").write("x")
os.rename("checkpoints/step-1", "checkpoints/step-2")
os.chmod("data", 0o600); os.utime("data", (1, 1))
os.unlink("checkpoints/step-2"); os.rmdir("checkpoints")
open("/dev/shm/" + name, "w").write("x")
tempfile.mkstemp(prefix=name, dir="/tmp")
for path in ["service.sock", work + "/service.sock"]:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); s.sendall(b"written by a service")
    except OSError: pass
    s.close()
subprocess.run(["mount", "--bind", "/", work + "/../bound"], stderr=subprocess.DEVNULL)
try: open(work + "/../bound" + elsewhere + "/file3", "w").write("x")
except OSError: pass
subprocess.run(["umount", "-l", work + "/../bound"], stderr=subprocess.DEVNULL)
for top in ["/tmp", work]:
    subprocess.run(["umount", "-l", top], stderr=subprocess.DEVNULL)
try: open(elsewhere + "/file", "a").write("after umount\n")
except OSError: pass
print("done")
subprocess.run(["umount", "-l", "/"], stderr=subprocess.DEVNULL)
try: open(elsewhere + "/file", "a").write("after umount\n")
except OSError: pass
`

func TestNothingLasts(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		before := b.digest()
		out, err := b.run(nil, "/usr/bin/python3", "-c", attack, b.work, b.home, b.elsewhere, filepath.Base(b.dir))
		if err != nil || !strings.Contains(out, "done\n") {
			t.Errorf("the program failed: %v\n%s", err, out)
		}
		if after := b.digest(); after != before {
			t.Errorf("the files have changed; before:\n%s\nafter:\n%s", before, after)
		}
		select {
		case told := <-b.received:
			t.Errorf("a service was told %q", told)
		default:
		}
		if left, _ := filepath.Glob("/tmp/" + filepath.Base(b.dir) + "?*"); len(left) > 0 {
			t.Errorf("left in /tmp: %q", left)
		}
	})
}

// TestThroughAndEmpty checks that writes below Through are kept, and that the directories of Empty are empty. A
// directory of Empty may be missing on the host.
func TestThroughAndEmpty(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		through := b.elsewhere + "/through"
		out, err := b.run(func(r *Request) {
			r.Through, r.Empty = []string{through}, []string{b.work + "/checkpoints", b.work + "/missing/deep"}
		}, "/bin/sh", "-ec", `ls -A checkpoints missing/deep; echo kept >>"$0/log"; echo lost >checkpoints/x; echo lost >missing/deep/x; cat checkpoints/x missing/deep/x`, through)
		if err != nil || out != "checkpoints:\n\nmissing/deep:\nlost\nlost\n" {
			t.Errorf("%v, %q", err, out)
		}
		if text, err := os.ReadFile(through + "/log"); err != nil || string(text) != "as it was\nkept\n" {
			t.Errorf("the log is %q, %v", text, err)
		}
		if _, err := os.Stat(b.work + "/missing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the missing directory: %v", err)
		}
		if text, err := os.ReadFile(b.work + "/checkpoints/step-1"); err != nil || string(text) != "as it was\n" {
			t.Errorf("the checkpoint is %q, %v", text, err)
		}
	})
}

// TestRoom checks that the layer has no more room than Room, and that nothing of it is left after the program.
func TestRoom(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		out, err := b.run(func(r *Request) { r.Room = 1 << 20 }, "/bin/sh", "-c", "head -c 2000000 /dev/zero >big || echo full")
		if err != nil || !strings.Contains(out, "No space left on device") || !strings.Contains(out, "full\n") {
			t.Errorf("%v, %q", err, out)
		}
		if entries, err := os.ReadDir(b.dir + "/layer"); err != nil || len(entries) > 0 {
			t.Errorf("the layer's directory holds %v, %v", entries, err)
		}
	})
}

// TestDirectoriesOfOthers checks that a user can write wherever the permissions allow it, even in directories of other
// users, and nowhere else.
func TestDirectoriesOfOthers(t *testing.T) {
	b := newBed(t, true)
	group, closed := b.work+"/group", b.work+"/closed"
	must(t, os.MkdirAll(group+"/inner", 0o777))
	must(t, os.Mkdir(closed, 0o755))
	for _, dir := range []string{group, group + "/inner"} {
		must(t, os.Chmod(dir, 0o2777))
	}
	out, err := b.run(nil, "/bin/sh", "-c", `echo x >group/a && echo x >group/inner/b && cat group/a group/inner/b; echo x >closed/c; echo x >/var/tmp/"$0" && echo temporary; true`, filepath.Base(b.dir))
	if err != nil || !strings.HasPrefix(out, "x\nx\n") || !strings.Contains(out, "Permission denied") || strings.Contains(out, "temporary") {
		t.Errorf("%v, %q", err, out)
	}
	out, err = b.run(func(r *Request) { r.Needed = append(r.Needed, "/var/tmp") }, "/bin/sh", "-c", `echo x >/var/tmp/"$0" && echo temporary`, filepath.Base(b.dir))
	if err != nil || out != "temporary\n" {
		t.Errorf("%v, %q", err, out)
	}
	if left, _ := filepath.Glob("/var/tmp/" + filepath.Base(b.dir) + "*"); len(left) > 0 {
		t.Errorf("left in /var/tmp: %q", left)
	}
}

// TestNoCapabilities checks that the program has its own IDs, and none of the capabilities that were needed to build
// the view.
func TestNoCapabilities(t *testing.T) {
	b := newBed(t, true)
	out, err := b.run(nil, "/bin/sh", "-c", "grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status; id -u; id -g")
	if err != nil || strings.Count(out, "0000000000000000") != 3 || !strings.HasSuffix(out, fmt.Sprintf("\n%d\n%[1]d\n", ordinary)) {
		t.Errorf("%v, %q", err, out)
	}
}

// TestFileSystemThatCannotBeCovered checks a file system over which no overlay can be mounted. If the program needs to
// write there, there must be an error. Otherwise the file system must be read-only.
func TestFileSystemThatCannotBeCovered(t *testing.T) {
	b := newBed(t, false)
	dir := b.work + "/sub"
	lower, upper, work := b.dir+"/l", b.dir+"/u", b.dir+"/w"
	// The kernel allows two overlays over each other, but no third one.
	for i := range 2 {
		for _, d := range []string{lower, upper, work} {
			must(t, os.Mkdir(fmt.Sprint(d, i), 0o755))
		}
		from := dir
		if i == 0 {
			from = lower + "0"
		}
		must(t, unix.Mount("tmpfs", upper+fmt.Sprint(i), "tmpfs", 0, ""))
		t.Cleanup(func() { must(t, unix.Unmount(upper+fmt.Sprint(i), unix.MNT_DETACH)) })
		must(t, os.Mkdir(fmt.Sprint(upper, i, "/u"), 0o755))
		must(t, os.Mkdir(fmt.Sprint(upper, i, "/w"), 0o755))
		must(t, unix.Mount("overlay", dir, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s%d/u,workdir=%s%[3]d/w", from, upper, i, upper)))
		t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	}
	b.write(dir+"/file", "as it was\n")
	out, err := b.run(nil, "/bin/sh", "-c", "echo x >data && echo x >>sub/file")
	if err == nil || !strings.Contains(out, "mount an overlay over") || !strings.Contains(out, dir) {
		t.Errorf("%v, %q", err, out)
	}
	out, err = b.run(func(r *Request) { r.Work = []string{b.work + "/data"} }, "/bin/sh", "-c", "echo x >data && cat sub/file && echo x >>sub/file")
	if err == nil || !strings.HasPrefix(out, "as it was\n") || !strings.Contains(out, "Read-only file system") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestSymbolicLinks checks that the paths of a request may have symbolic links, also absolute ones, and that the links
// stay as they are.
func TestSymbolicLinks(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		group := b.dir + "/real"
		for _, dir := range []string{group + "/1.0/bin", group + "/run/logs", group + "/run/checkpoints"} {
			must(t, os.MkdirAll(dir, 0o755))
		}
		must(t, filepath.WalkDir(group, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && b.user { // the files belong to another group, as if it were the main group of other users
				err = errors.Join(os.Chown(path, ordinary, ordinary+1), os.Chmod(path, 0o775))
			}
			return err
		}))
		must(t, os.Symlink("1.0", group+"/latest"))
		must(t, os.Symlink(group, b.dir+"/absolute"))
		b.write(group+"/1.0/bin/prog", "prog\n")
		b.write(group+"/run/checkpoints/step-1", "as it was\n")
		before := b.digest()
		out, err := b.run(func(r *Request) {
			r.Work = []string{b.dir + "/absolute/run"}
			r.Needed = append(r.Needed, b.dir+"/absolute/latest/bin", b.dir+"/absolute/latest/bin/prog")
			r.Empty, r.Through = []string{b.dir + "/absolute/run/checkpoints"}, []string{b.dir + "/absolute/run/logs"}
		}, "/bin/sh", "-ec", `cd "$0"/absolute; cat latest/bin/prog; readlink latest; ls -A run/checkpoints; echo x >run/new; echo x >run/checkpoints/new; echo logged >run/logs/log; ls run`, b.dir)
		if err != nil || out != "prog\n1.0\ncheckpoints\nlogs\nnew\n" {
			t.Errorf("%v, %q", err, out)
		}
		log := group + "/run/logs/log"
		if text, err := os.ReadFile(log); err != nil || string(text) != "logged\n" {
			t.Errorf("the log is %q, %v", text, err)
		}
		must(t, os.Remove(log))
		digest := func(text string) string { // the directory of the log has changed
			var kept []string
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, group+"/run/logs ") {
					kept = append(kept, line)
				}
			}
			return strings.Join(kept, "")
		}
		if after := b.digest(); digest(after) != digest(before) {
			t.Errorf("the files have changed; before:\n%s\nafter:\n%s", before, after)
		}
	})
}

// TestClosedDirectories checks that mounts in directories that the user cannot enter or list do not prevent a view.
func TestClosedDirectories(t *testing.T) {
	b := newBed(t, true)
	for _, c := range []struct {
		dir  string
		mode fs.FileMode
	}{{b.dir + "/closed", 0o700}, {b.dir + "/unlisted", 0o711}} {
		must(t, os.MkdirAll(c.dir+"/mount", 0o755))
		must(t, os.MkdirAll(c.dir+"/run", 0o755))
		must(t, os.Chown(c.dir+"/run", ordinary, ordinary))
		must(t, unix.Mount("tmpfs", c.dir+"/mount", "tmpfs", 0, ""))
		t.Cleanup(func() { must(t, unix.Unmount(c.dir+"/mount", unix.MNT_DETACH)) })
		must(t, os.Chmod(c.dir, c.mode))
	}
	out, err := b.run(func(r *Request) { r.Work = append(r.Work, b.dir+"/unlisted/run") },
		"/bin/sh", "-c", `cd ../unlisted/run && echo x >new && cat new; ls ../mount && echo mounted; cd "$0/closed" 2>/dev/null || echo closed`, b.dir)
	if err != nil || out != "x\nmounted\nclosed\n" {
		t.Errorf("%v, %q", err, out)
	}
	if _, err := os.Stat(b.dir + "/unlisted/run/new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was written: %v", err)
	}
}

// TestMixed checks that Mixed reports files with another owner or group that the user may write.
func TestMixed(t *testing.T) {
	b := newBed(t, false)
	r := Request{Work: []string{b.work}}
	if r.Mixed() {
		t.Error("all files are the caller's own")
	}
	must(t, os.Chown(b.work+"/sub/old", 0, ordinary))
	if !r.Mixed() {
		t.Error("one file has another group")
	}
}
