package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/noskip"
)

// mapFile is a Python program that maps a shared-memory file, named like that of an MPI library, and waits.
const mapFile = `
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 4096)
m = mmap.mmap(fd, 4096)
os.close(fd)
open(sys.argv[2], "w").close()
time.sleep(1000)
`

// TestSharedMemory checks that gangrun removes the files that the ranks of a gang have left in shared memory, and no
// others. A gang in another PID namespace may use files there, too, although its processes cannot be seen.
func TestSharedMemory(t *testing.T) {
	for _, user := range []string{"root", "nobody in a user namespace"} {
		t.Run(user, func(t *testing.T) {
			b := newBench(t)
			mine := filepath.Join("/dev/shm", fmt.Sprintf("ucx_shm_posix_mine%d", os.Getpid()))
			other := filepath.Join("/dev/shm", fmt.Sprintf("ucx_shm_posix_other%d", os.Getpid()))
			t.Cleanup(func() { _ = os.Remove(mine); _ = os.Remove(other) })
			unshare := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
			id := os.Getuid()
			if user != "root" {
				unshare = append(unshare, "--map-root-user")
				if id == 0 {
					id = 65534
					if err := os.Chmod(filepath.Dir(b.binary), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := chownAll(b.dir, id); err != nil {
						t.Fatal(err)
					}
				}
			}
			as := func(argv ...string) *exec.Cmd {
				cmd := b.command(argv...)
				cmd.Path, cmd.Args = "/usr/bin/unshare", append(append([]string{}, unshare...), argv...)
				cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				if id != os.Getuid() {
					cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
				}
				cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+b.dir)
				return cmd
			}
			if out, err := as("true").CombinedOutput(); err != nil {
				noskip.Skip(t, "no PID namespace can be made: %v: %s", err, out)
			}
			// The file of the other gang must be newer than the beginning of this gang. So the other gang makes and
			// maps it only when a rank of this gang says so.
			holds, mapped := filepath.Join(b.dir, "holds"), filepath.Join(b.dir, "mapped")
			if err := unix.Mkfifo(holds, 0o666); err != nil {
				t.Fatal(err)
			}
			_ = os.Chown(holds, id, id)
			foreigner := as("sh", "-c", `read -r _ <"$0"; exec python3 -c "$1" "$2" "$3"`, holds, mapFile, other, mapped)
			if err := foreigner.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = foreigner.Process.Kill(); _ = foreigner.Wait() })
			rank := `[ $RANK = 0 ] && exec python3 -c "$0" "$1" ready
until [ -e ready ]; do sleep 0.01; done; echo go >"$2"; until [ -e "$3" ]; do sleep 0.01; done; kill -KILL $$`
			run := as(b.binary, "run", "--preflight", "off", "--retries", "0", "-n", "2", "--", "sh", "-c", rank, mapFile, mine, holds, mapped)
			out, _ := run.CombinedOutput()
			if code := run.ProcessState.ExitCode(); code != 128+9 {
				t.Fatalf("exit code %d, want 137; gangrun said:\n%s", code, out)
			}
			if _, err := os.Stat(mine); !os.IsNotExist(err) {
				t.Errorf("what the ranks shared is still there (%v)", err)
			}
			if _, err := os.Stat(other); err != nil {
				t.Errorf("another gang's memory is gone: %v", err)
			}
			if strings.Contains(string(out), "panic") {
				t.Errorf("gangrun said:\n%s", out)
			}
		})
	}
}

// chownAll gives a directory and everything in it to a user, and makes the directory accessible.
func chownAll(dir string, id int) error {
	for parent := filepath.Dir(dir); parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, id, id)
	})
}
