package main_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/testcontainerd"
	"github.com/gangrun/gangrun/internal/testimage"
)

// TestImageRootless runs jobs as a user who is not root and whose containerd runs in a user namespace.
func TestImageRootless(t *testing.T) {
	t.Parallel()
	const uid = 47_011
	daemon := testcontainerd.StartRootless(t, uid)
	dir, err := os.MkdirTemp("/srv", "gangrun-rootless-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{program: "gangrun", testimage.Busybox(t).Archive(t, "image.tar"): "image.tar"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		writeProgram(t, filepath.Join(dir, to), data)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "tmp"), 0o700), filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, uid))
	})); err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.binary, b.dir = filepath.Join(dir, "gangrun"), dir
	b.env = append(b.env, "CONTAINERD_ADDRESS="+daemon.Socket, "HOME="+dir)
	run := func(args ...string) (code int, said string) {
		t.Helper()
		cmd := b.command(append([]string{"run", "--image", "image.tar", "--output", "all", "-n", "2", "--mount", ".:rw", "--checkpoint-dir", "ck"}, args...)...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return b.ends(cmd)
	}
	code, said := run("--", "sh", "-c", "id -u; test ! -e new.$RANK || echo seen; echo > new.$RANK")
	if code != 0 || strings.Count(said, "]  0\n") != 2 || strings.Contains(said, "]  seen") {
		t.Errorf("code %d:\n%s", code, said)
	}
	for rank := range 2 {
		info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("new.%d", rank)))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uid {
			t.Errorf("rank %d: %+v, %v", rank, info, err)
		}
	}
	for _, refused := range [][]string{{"--container-memory", "64MiB"}, {"--container-user", "image"}, {"--container-user", "1:1"}} {
		if code, said := run(append(refused, "--", "true")...); code != 78 || !strings.Contains(said, "a containerd of a user's own cannot") {
			t.Errorf("%s: code %d:\n%s", refused, code, said)
		}
	}
	imageBench{bench: b, daemon: daemon}.nothingLeft()
}
