package main_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// attack is a Python program that writes wherever a job can write, as rank 0 of a trial. It uses absolute and relative
// paths, links, a mapping and a bind mount. It writes to shared memory, temporary directories, the home directory and
// the checkpoint directory. It fails if it cannot do something that the job could do outside a trial.
const attack = `
import mmap, os, shutil, socket, sys, tempfile
if os.environ["RANK"] != "0": sys.exit()
work, home, name, checkpoints = os.getcwd(), os.environ["HOME"], sys.argv[1], os.environ["GANGRUN_CHECKPOINT_DIR"]
assert os.listdir(checkpoints) == [], os.listdir(checkpoints)
open("data", "a").write("more\n")
open(work + "/new", "w").write("x")
open("symlink", "w").write("x")
open("hardlink", "a").write("x")
os.link("data", "link")
with open("sub/old", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0); m[:2] = b"AS"; m.flush(); m.close()
open("../bound/file", "a").write("x")
open(home + "/.profile", "a").write("x"); os.makedirs(home + "/.cache/x")
shutil.rmtree("sub"); os.mkdir("sub"); open("sub/other", "w").write("x")
open(checkpoints + "/step-2", "w").write("x")
os.chmod("data", 0o600); os.utime("data", (1, 1))
open("/dev/shm/" + name, "w").write("x")
tempfile.mkstemp(prefix=name); tempfile.mkstemp(prefix=name, dir="/tmp"); tempfile.mkstemp(prefix=name, dir="/var/tmp")
s = socket.socket(socket.AF_UNIX)
try: s.connect("service.sock"); s.sendall(b"x")
except OSError: pass
`

// ordinary is the ID of a user who is not root. It also differs from the ID that the kernel shows in a user namespace
// for users who are not mapped there.
const ordinary = 23456

// trialBed is a bench with the files of a job of a user.
type trialBed struct {
	*bench
	uid  int
	work string
}

func newTrialBed(t *testing.T, uid int) *trialBed {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test must be run by root, who can be anybody")
	}
	b := &trialBed{bench: newBench(t), uid: uid}
	b.work = filepath.Join(b.dir, "work")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"work/sub", "work/checkpoints", "userhome", "elsewhere", "bound"} {
		must(os.MkdirAll(filepath.Join(b.dir, dir), 0o755))
	}
	for name, text := range map[string]string{
		"work/data": "as it was\n", "work/sub/old": "as it was\n", "work/checkpoints/step-1": "as it was\n",
		"userhome/.profile": "as it was\n", "elsewhere/file": "as it was\n", "work/attack.py": attack,
	} {
		must(os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644))
	}
	must(os.Symlink("../elsewhere/file", filepath.Join(b.work, "symlink")))
	must(os.Link(filepath.Join(b.dir, "elsewhere/file"), filepath.Join(b.work, "hardlink")))
	must(unix.Mknod(filepath.Join(b.work, "service.sock"), unix.S_IFSOCK|0o777, 0))
	must(filepath.WalkDir(b.dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, uid, uid)
		}
		return err
	}))
	// The user must be able to enter the directories.
	for at := b.dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		must(os.Chmod(at, 0o755))
	}
	must(os.Chmod(filepath.Dir(b.binary), 0o755))
	must(unix.Mount(filepath.Join(b.dir, "elsewhere"), filepath.Join(b.dir, "bound"), "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(unix.Unmount(filepath.Join(b.dir, "bound"), unix.MNT_DETACH)) })
	return b
}

// as returns a command that runs gangrun as the user, in the working directory of the job.
func (b *trialBed) as(args ...string) *exec.Cmd {
	cmd := b.command(args...)
	cmd.Dir = b.work
	cmd.Env = append(cmd.Env, "HOME="+filepath.Join(b.dir, "userhome"))
	if b.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}}
	}
	return cmd
}

// digest returns a text that changes if any file of the job or its user changes.
func (b *trialBed) digest() string {
	b.t.Helper()
	var all strings.Builder
	for _, dir := range []string{"work", "userhome", "elsewhere", "tmp"} {
		_ = filepath.WalkDir(filepath.Join(b.dir, dir), func(path string, e fs.DirEntry, err error) error {
			var s unix.Stat_t
			if err != nil || unix.Lstat(path, &s) != nil {
				return err
			}
			if path == b.work+"/checkpoints" { // the checks make a file here and remove it
				s.Mtim, s.Ctim = unix.Timespec{}, unix.Timespec{}
			}
			if dir == "tmp" { // gangrun itself makes and removes files here
				if !strings.HasPrefix(e.Name(), "gangrun-"+strconv.Itoa(b.uid)) {
					fmt.Fprintln(&all, path)
				}
				return nil
			}
			content, _ := os.Readlink(path)
			if e.Type().IsRegular() {
				data, err := os.ReadFile(path)
				content = fmt.Sprintf("%x %v", sha256.Sum256(data), err)
			}
			fmt.Fprintf(&all, "%s %o %d:%d n%d %d m%d c%d %s\n", path, s.Mode, s.Uid, s.Gid, s.Nlink, s.Size, s.Mtim.Nano(), s.Ctim.Nano(), content)
			return nil
		})
	}
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		left, _ := filepath.Glob(filepath.Join(dir, b.mark+"*"))
		fmt.Fprintln(&all, dir, len(left))
	}
	return all.String()
}

// TestTrialLeavesNothing checks that everything that a trial writes is discarded. It tries different users and MPI
// libraries, on one host and on simulated hosts that share all directories.
func TestTrialLeavesNothing(t *testing.T) {
	for _, uid := range []int{0, ordinary} {
		for _, c := range []struct {
			mpi   job.MPI
			hosts int
		}{{job.MPINone, 0}, {job.MPIMPICH, 0}, {job.MPIOpenMPI, 0}, {job.MPINone, 2}, {job.MPIOpenMPI, 2}} {
			t.Run(fmt.Sprintf("uid %d, %s, %d hosts", uid, c.mpi, c.hosts), func(t *testing.T) {
				b := newTrialBed(t, uid)
				after := "true"
				if c.mpi != job.MPINone { // the ranks communicate after they have written the files
					program, err := os.ReadFile(failProgram(t, c.mpi))
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(b.work, "meet"), program, 0o755); err != nil {
						t.Fatal(err)
					}
					after = "exec ./meet allreduce"
				}
				args := []string{"preflight", "-n", "4", "--mpi", string(c.mpi), "--trial-ranks", "2", "--checkpoint-dir", "checkpoints"}
				if c.hosts > 0 {
					args = append(args, "--loopback", strconv.Itoa(c.hosts))
				}
				args = append(args, "--", "sh", "-c", `/usr/bin/python3 attack.py "$0" && `+after, b.mark)
				before := b.digest()
				out, err := b.as(args...).CombinedOutput()
				if err != nil || !bytes.Contains(out, []byte("(exit 0)")) || bytes.Contains(out, []byte("warning")) {
					t.Errorf("%v\n%s", err, out)
				}
				if after := b.digest(); after != before {
					t.Errorf("the files have changed; before:\n%s\nafter:\n%s", before, after)
				}
			})
		}
	}
}

// TestTrialUncontainable checks a host that cannot contain a trial. gangrun must leave the trial out, and say why and
// what to do. With --trial uncontained, it must report changes to the files of the job.
func TestTrialUncontainable(t *testing.T) {
	b := newTrialBed(t, ordinary)
	// In this user namespace, no further user namespaces can be made.
	within := func(args ...string) (string, error) {
		cmd := b.as(args...)
		cmd.Args = append([]string{"unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"`, b.binary}, args...)
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = path
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	job := []string{"--", "sh", "-c", "echo by $GANGRUN_ATTEMPT >>tried"}
	out, err := within(append([]string{"run", "-n", "2"}, job...)...)
	if err != nil || !strings.Contains(out, "the trial was left out, since what it writes could not be thrown away: ") ||
		!strings.Contains(out, "cannot make namespaces: user namespaces are switched off or used up here (sysctl user.max_user_namespaces)") || !strings.Contains(out, "hint: --trial uncontained ") {
		t.Errorf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(b.work, "tried")); err != nil || string(text) != "by 1\nby 1\n" {
		t.Errorf("tried: %q, %v", text, err)
	}
	if err := os.Remove(filepath.Join(b.work, "tried")); err != nil {
		t.Fatal(err)
	}
	out, err = within(append([]string{"run", "-n", "2", "--trial", "uncontained"}, job...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 65 || !strings.Contains(out, "rm -r -- '"+b.work+"/tried'") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTrialWorkdirs checks that a trial works without a directory for temporary files, and with a working directory
// that is a symbolic link. It must report or discard what the trial writes there.
func TestTrialWorkdirs(t *testing.T) {
	b := newTrialBed(t, ordinary)
	if err := os.Symlink("work", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	job := []string{"--", "sh", "-c", "test $GANGRUN_ATTEMPT = 1 || echo by $WORLD_SIZE >>tried"}
	cmd := b.as(append([]string{"run", "-n", "2", "--workdir", filepath.Join(b.dir, "link")}, job...)...)
	cmd.Env = append(cmd.Env, "TMPDIR=/nonexistent")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("(exit 0)")) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(b.work, "tried")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the trial wrote: %v", err)
	}
	out, err := b.as(append([]string{"run", "-n", "2", "--trial", "uncontained", "--workdir", filepath.Join(b.dir, "link")}, job...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 65 || !bytes.Contains(out, []byte(b.work+"/tried")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTrialOverStackedOverlays checks that the trial is left out if the job uses a file system over which no overlay
// can be mounted.
func TestTrialOverStackedOverlays(t *testing.T) {
	b := newTrialBed(t, 0)
	dir := filepath.Join(b.work, "sub")
	for i := range 2 { // the kernel allows no more overlays over each other
		top := filepath.Join(b.dir, fmt.Sprint("layer", i))
		for _, d := range []string{"", "up", "work"} {
			if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		from := dir
		if i == 0 {
			from = filepath.Join(b.dir, "elsewhere")
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s/up,workdir=%[2]s/work", from, top)
		if err := unix.Mount("overlay", dir, "overlay", 0, options); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	out, err := b.as("run", "-n", "2", "--", "sh", "-c", "echo by $GANGRUN_ATTEMPT >>sub/tried").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("the trial was left out")) || !bytes.Contains(out, []byte("cannot mount an overlay over "+dir)) {
		t.Errorf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "tried")); err != nil || string(text) != "by 1\nby 1\n" {
		t.Errorf("tried: %q, %v", text, err)
	}
}

// TestTrialKilled kills a process while a trial runs. No process of the trial may be left, even if it is detached, and
// no directory. The other processes must go on, or end in order.
func TestTrialKilled(t *testing.T) {
	t.Parallel()
	const program = `(setsid sh -c 'trap "" TERM HUP; while :; do sleep 60; done' >/dev/null 2>&1 &) ; echo ready; trap "" TERM; while :; do sleep 60; done`
	for _, victim := range []string{"controller", "watchdog", "agent", "contained agent", "rank"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			r := b.start(nil, "-n", "2", "--retries", "0", "--grace", "1s", "--", "sh", "-c", "test $GANGRUN_ATTEMPT = 1 && exit; "+program)
			rank := r.started(0, 0)
			r.await("what the rank says", func() bool { return b.trialLog() == "ready\n" })
			inner := parent(rank)
			outer := parent(inner)
			pid := map[string]int{"controller": r.cmd.Process.Pid, "watchdog": parent(outer), "agent": outer, "contained agent": inner, "rank": rank}[victim]
			since := time.Now()
			if !r.strike(pid, unix.SIGKILL) {
				t.Fatalf("the %s, process %d, is not there", victim, pid)
			}
			r.vanish(since)
			code := r.finish()
			if want := victim == "controller"; (code == -1) != want {
				t.Errorf("exit code %d", code)
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, "tmp", "gangrun-layer*")); len(left) > 0 {
				t.Errorf("left in the directory for temporary files: %q", left)
			}
			if left := r.leftovers(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
