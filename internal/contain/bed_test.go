package contain

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain makes the test binary serve as the process that builds a view, as the program that this process becomes,
// and as the process that starts it.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "contain":
			os.Exit(Main(os.Args[0], os.Args[2:]))
		case "become":
			fail("execute", unix.Exec(os.Args[2], os.Args[2:], os.Environ()))
		case "start":
			startContained(os.Args[2], os.Args[3:])
		}
	}
	os.Exit(m.Run())
}

func fail(what string, err error) {
	fmt.Fprintln(os.Stderr, what, err)
	os.Exit(9)
}

// startContained starts a program in a view, as an agent does, and exits with its exit code.
func startContained(request string, words []string) {
	var r Request
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		fail("decode", err)
	}
	args, err := r.Args(os.Args[0], append([]string{"become"}, words...)...)
	if err != nil {
		fail("encode", err)
	}
	told, report, err := os.Pipe()
	if err != nil {
		fail("pipe", err)
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: args, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{nil, nil, nil, nil, report}, SysProcAttr: Attr(r.User),
	}
	if err := cmd.Start(); err != nil {
		fail("start", err)
	}
	_ = report.Close()
	if why, _ := io.ReadAll(told); len(why) > 0 {
		fail("cannot:", errors.New(string(why)))
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	os.Exit(0)
}

// ordinary is the ID of a user who is not root.
const ordinary = 23456

// bed has files that a contained program must not change.
type bed struct {
	t          *testing.T
	user       bool
	dir        string // the directory of all files
	work, home string
	elsewhere  string // a directory that the request does not name
	received   chan string
}

func newBed(t *testing.T, user bool) *bed {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test must be run by root, who can be anybody")
	}
	dir, err := os.MkdirTemp("/tmp", "contain-") // unlike t.TempDir, every user can enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	b := &bed{t: t, user: user, dir: dir, work: filepath.Join(dir, "work"), home: filepath.Join(dir, "home"), elsewhere: filepath.Join(dir, "elsewhere")}
	for _, d := range []string{b.work, b.home, b.elsewhere, b.work + "/sub", b.work + "/checkpoints", b.dir + "/bound", b.elsewhere + "/through", b.dir + "/layer"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{b.work + "/data", b.work + "/sub/old", b.work + "/checkpoints/step-1", b.home + "/.profile", b.elsewhere + "/file", b.elsewhere + "/through/log"} {
		b.write(f, "as it was\n")
	}
	must(t, os.Symlink(b.elsewhere+"/file", b.work+"/symlink"))
	must(t, os.Link(b.elsewhere+"/file", b.work+"/hardlink"))
	must(t, os.Chmod(dir, 0o755))
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if user && err == nil {
			err = os.Lchown(path, ordinary, ordinary)
		}
		return err
	}))
	must(t, unix.Mount(b.elsewhere, b.dir+"/bound", "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(b.dir+"/bound", unix.MNT_DETACH)) })
	b.listen()
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bed) write(path, text string) {
	b.t.Helper()
	must(b.t, os.WriteFile(path, []byte(text), 0o644))
}

// listen opens a socket of a service in the working directory. The service records the data that it gets.
func (b *bed) listen() {
	l, err := net.Listen("unix", b.work+"/service.sock")
	must(b.t, err)
	must(b.t, os.Chmod(b.work+"/service.sock", 0o777))
	b.received = make(chan string, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			data, _ := io.ReadAll(conn)
			_ = conn.Close()
			b.received <- string(data)
		}
	}()
	b.t.Cleanup(func() { _ = l.Close(); <-done })
}

// digest returns a text that changes if any file changes that the program could write.
func (b *bed) digest() string {
	b.t.Helper()
	var all strings.Builder
	note := func(root, prefix string) {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || path == b.dir+"/layer" || root == "/dev/shm" && !strings.HasPrefix(filepath.Base(path), prefix) && path != root {
				return nil
			}
			var s unix.Stat_t
			if unix.Lstat(path, &s) != nil || path == root && prefix != "" {
				return nil
			}
			content := ""
			if e.Type().IsRegular() {
				data, err := os.ReadFile(path)
				content = fmt.Sprintf("%x %v", sha256.Sum256(data), err)
			} else if e.Type() == fs.ModeSymlink {
				content, _ = os.Readlink(path)
			}
			fmt.Fprintf(&all, "%s %o %d:%d n%d %d m%d c%d %s\n", path, s.Mode, s.Uid, s.Gid, s.Nlink, s.Size, s.Mtim.Nano(), s.Ctim.Nano(), content)
			return nil
		})
	}
	note(b.dir, "")
	note("/dev/shm", filepath.Base(b.dir))
	return all.String()
}

// run runs a program in a view. Needed has the working directory and the home directory.
func (b *bed) run(change func(*Request), words ...string) (string, error) {
	b.t.Helper()
	r := Request{Layer: b.dir + "/layer", Room: 32 << 20, Work: []string{b.work}, Needed: []string{b.home, "/tmp"}, User: b.user}
	if change != nil {
		change(&r)
	}
	data, err := json.Marshal(r)
	must(b.t, err)
	cmd := exec.CommandContext(b.t.Context(), "/proc/self/exe", append([]string{"start", string(data)}, words...)...)
	cmd.Dir, cmd.Env = b.work, append(os.Environ(), "HOME="+b.home)
	if b.user {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary, Groups: []uint32{ordinary}}}
	}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// each runs a test as root and as an ordinary user.
func each(t *testing.T, test func(t *testing.T, b *bed)) {
	for name, user := range map[string]bool{"root": false, "user": true} {
		t.Run(name, func(t *testing.T) { test(t, newBed(t, user)) })
	}
}
