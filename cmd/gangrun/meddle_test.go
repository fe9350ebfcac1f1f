package main_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// bob and alice are users of the hosts. bob must not get anything of a run.
const (
	bob     = 7002
	alice   = 7001
	asUser  = "--reuid=%d --regid=%[1]d --clear-groups --" // flags of setpriv
	aSecret = "tok-4f1d9c62b7e8"
)

// actAs runs a command on a host as some user.
func actAs(t *testing.T, h *testhosts.Host, uid int, argv ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return h.Exec(ctx, slices.Concat([]string{"setpriv"}, strings.Fields(fmt.Sprintf(asUser, uid)), argv)...)
}

// meddle is a Python program that tries to read and change an agent's directory, and to inspect its processes. Its
// arguments are the user of the agent, the directory, and the host of the agent. It prints what succeeds.
const meddle = `
import os, signal, socket, sys
uid, dir, host = int(sys.argv[1]), sys.argv[2], sys.argv[3].encode()

def attempt(name, do):
    try:
        do()
    except OSError:
        return
    print(name)

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(dir + "/socket")
    s.close()

def read(path):
    with open(path, "rb") as f:
        f.read(1)

attempt("list the directory above", lambda: os.listdir(os.path.dirname(dir)))
attempt("list", lambda: os.listdir(dir))
attempt("see the socket", lambda: os.stat(dir + "/socket"))
attempt("connect", connect)
for name in ("lock", "log", "logs"):
    attempt("open " + name, lambda: os.close(os.open(dir + "/" + name, os.O_RDONLY)))
attempt("write", lambda: os.close(os.open(dir + "/lock", os.O_WRONLY)))
attempt("make", lambda: os.close(os.open(dir + "/made", os.O_WRONLY | os.O_CREAT)))
attempt("remove", lambda: os.unlink(dir + "/made"))
seen = 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    path = "/proc/" + pid
    try:
        mine = os.stat(path).st_uid == uid and open(path + "/cmdline", "rb").read().split(b"\0")[1:3] == [b"agent", host]
    except OSError:
        continue
    if not mine or int(pid) == os.getpid():
        continue
    seen += 1
    attempt("signal", lambda: os.kill(int(pid), 0))
    attempt("environ", lambda: read(path + "/environ"))
    attempt("descriptors", lambda: os.listdir(path + "/fd"))
    attempt("memory", lambda: read(path + "/maps"))
print("processes:", seen)
`

// meddling returns what the user as can do to an agent on a host, and how many of its processes that user sees.
func meddling(t *testing.T, h *testhosts.Host, as, of int, dir, host string) (could []string, seen int) {
	t.Helper()
	out, err := actAs(t, h, as, "python3", "-c", meddle, strconv.Itoa(of), dir, host)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if count, ok := strings.CutPrefix(line, "processes: "); ok {
			if seen, err = strconv.Atoi(count); err != nil {
				t.Fatal(err)
			}
		} else if !slices.Contains(could, line) {
			could = append(could, line)
		}
	}
	return could, seen
}

// TestSquattedDirectory lets another user make the directory that the agent would use. The agent must use another
// directory and put nothing into that of the other user. If there is no other place, gangrun must say why.
func TestSquattedDirectory(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 1)
	h := bed.Host(1)
	squat := func(script string) {
		t.Helper()
		if _, err := actAs(t, h, bob, "sh", "-ec", "umask 0; "+script); err != nil {
			t.Fatal(err)
		}
	}
	squat("mkdir /home/bob/trap /tmp/gangrun-0; ln -s /home/bob/trap /var/tmp/gangrun-0")
	run := func() (*farRun, int) {
		t.Helper()
		r := startFarCommand(t, bed, "h1:1", 1, job.MPINone, []string{"true"}, "--retries", "0")
		return r, r.finish()
	}
	if r, code := run(); code != 0 {
		t.Errorf("exit code %d, want 0:\n%s", code, r.errs.String())
	}
	squat("rmdir /tmp/gangrun-0; ln -s /home/bob/trap /tmp/gangrun-0")
	if r, code := run(); code != 0 {
		t.Errorf("exit code %d, want 0:\n%s", code, r.errs.String())
	}
	if out, err := h.Exec(context.Background(), "rm", "-rf", "/dev/shm/gangrun-0"); err != nil {
		t.Fatal(out, err)
	}
	squat("mkdir /dev/shm/gangrun-0")
	r, code := run()
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if want := fmt.Sprintf("%q is not a directory of user 0 with mode 0700", dir+"/gangrun-0"); !strings.Contains(r.errs.String(), want) {
			t.Errorf("gangrun does not say %q:\n%s", want, r.errs.String())
		}
	}
	if code != 69 {
		t.Errorf("exit code %d, want 69", code)
	}
	r.nothingLeft()
	if out, err := h.Exec(context.Background(), "find", "/home/bob/trap", "/dev/shm/gangrun-0", "-mindepth", "1"); err != nil || out != "" {
		t.Errorf("in another user's directories there is %q, %v", out, err)
	}
}
