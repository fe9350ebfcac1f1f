package container_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testcontainerd"
	"github.com/gangrun/gangrun/internal/testimage"
	"github.com/gangrun/gangrun/launcher/container"
)

// bed is a containerd with an image.
type bed struct {
	*testcontainerd.Daemon
	runtime *container.Runtime
	image   *container.Image
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{Daemon: testcontainerd.Start(t)}
	b.open(t)
	b.image = b.load(t, testimage.Busybox(t).Archive(t, "image.tar"), "gangrun.local/test:1")
	return b
}

func (b *bed) open(t *testing.T) {
	t.Helper()
	runtime, err := container.Open(t.Context(), b.Socket)
	if err != nil {
		t.Fatal(err)
	}
	b.runtime = runtime
	t.Cleanup(func() { _ = runtime.Close() })
}

func (b *bed) load(t *testing.T, archive, name string) *container.Image {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image, err := b.runtime.Import(t.Context(), name, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.runtime.Unpack(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	return image
}

// start starts a shell in a container. The container is removed at the end of the test.
func (b *bed) start(t *testing.T, s container.Spec, script string) (*container.Container, error) {
	t.Helper()
	s.ID = "gangrun-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "'", "").Replace(t.Name()))
	if s.Image == nil {
		s.Image = b.image
	}
	s.Args, s.Log = []string{"/bin/sh", "-c", script}, filepath.Join(t.TempDir(), "log")
	s.Labels = map[string]string{"gangrun/test": "yes"}
	c, err := b.runtime.Start(t.Context(), s)
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := c.End(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return c, err
}

// output runs a script in a container and returns its output.
func (b *bed) output(t *testing.T, s container.Spec, script string) string {
	t.Helper()
	c, err := b.start(t, s, script)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Exited():
	case <-time.After(2 * time.Minute):
		t.Fatalf("it does not end: %s", c.Said())
	}
	return c.Said()
}

func TestContainer(t *testing.T) {
	b := newBed(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	layer := func(t *testing.T) string {
		made, err := os.MkdirTemp("/dev/shm", "gangrun-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(made) })
		return made
	}
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec   container.Spec
		script string
		want   string
	}{
		"environment":                      {container.Spec{Env: []string{"A=b c"}}, "echo $FROM_IMAGE $A", "yes b c"},
		"user":                             {container.Spec{User: container.User{UID: 4711, GID: 4712, Groups: []uint32{4713}}}, "id -u; id -g; id -G", "4711\n4712\n4712 4713"},
		"user of an image that names none": {container.Spec{ImageUser: true, User: container.User{UID: 4711, GID: 4712}}, "id -u; id -g", "0\n0"},
		"read-only mount":                  {container.Spec{Mounts: []container.Mount{{Source: dir, Target: "/d"}}}, "cat /d/file; touch /d/new 2>/dev/null || echo - refused", "of the host- refused"},
		"mount":                            {container.Spec{Mounts: []container.Mount{{Source: dir, Target: "/d", Write: true}}}, "touch /d/new && ls /d", "file\nnew"},
		"mount of a file":                  {container.Spec{Mounts: []container.Mount{{Source: filepath.Join(dir, "file"), Target: "/a/b"}}}, "cat /a/b", "of the host"},
		"network of the host":              {container.Spec{}, "ls -l /proc/self/ns/net | grep -c -F '" + network + "'", "1"},
		"own network":                      {container.Spec{OwnNetwork: true}, "ls -l /proc/self/ns/net | grep -c -F '" + network + "'", "0"},
		"processes":                        {container.Spec{}, "cat /proc/" + fmt.Sprint(os.Getpid()) + "/comm", "container.test"},
		"shared memory":                    {container.Spec{Limits: container.Limits{Shm: 5 << 20}}, "grep /dev/shm /proc/self/mounts | grep -o size=[0-9]*k", "size=5120k"},
		"read-only root":                   {container.Spec{ReadOnly: true}, "touch /new 2>/dev/null || echo refused; touch /tmp/new && echo written", "refused\nwritten"},
		"no new privileges":                {container.Spec{}, "grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1"},
		"system calls":                     {container.Spec{}, "grep Seccomp: /proc/self/status", "Seccomp:\t2"},
		"no other user's root":             {container.Spec{User: container.User{UID: 4711, GID: 4711}}, "grep CapEff /proc/self/status", "CapEff:\t0000000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(filepath.Join(dir, "new"))
			if got := b.output(t, c.spec, c.script); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("layer", func(t *testing.T) {
		_ = os.Remove(filepath.Join(dir, "new"))
		got := b.output(t, container.Spec{Mounts: []container.Mount{{Source: dir, Target: "/d", Write: true, Layer: layer(t)}}},
			"echo changed > /d/file; mkdir /d/sub; mv /d/sub /d/other; touch /d/new; cat /d/file; ls /d")
		if want := "changed\nfile\nnew\nother"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		left, err := os.ReadDir(dir)
		data, readErr := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil || readErr != nil || len(left) != 1 || string(data) != "of the host" {
			t.Errorf("the host has %v, %q (%v, %v)", left, data, err, readErr)
		}
	})
	t.Run("working directory", func(t *testing.T) {
		i := testimage.Busybox(t)
		i.Config.WorkingDir = "/made/for it"
		image := b.load(t, i.Archive(t, "image.tar"), "gangrun.local/test:workdir")
		if got := b.output(t, container.Spec{Image: image}, "pwd"); got != "/made/for it" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("memory", func(t *testing.T) {
		got := b.output(t, container.Spec{Limits: container.Limits{Memory: 32 << 20}}, "(head -c 200000000 /dev/zero | dd of=/dev/shm/x bs=1M) 2>/dev/null; echo $?")
		if got == "0" {
			t.Errorf("it could use more memory than its limit")
		}
	})
	t.Run("device", func(t *testing.T) {
		descriptions := t.TempDir()
		text := `{"cdiVersion": "0.6.0", "kind": "example.test/gpu", "devices": [{"name": "GPU-1", "containerEdits": {
			"env": ["DEVICE=GPU-1"], "deviceNodes": [{"path": "/dev/example0", "hostPath": "/dev/zero"}],
			"mounts": [{"hostPath": "` + dir + `", "containerPath": "/driver", "options": ["rbind", "ro"]}]}}]}`
		if err := os.WriteFile(filepath.Join(descriptions, "example.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got := b.output(t, container.Spec{Devices: container.Devices{GPUs: []string{"GPU-1"}, Kind: "example.test/gpu", Dirs: []string{descriptions}}},
			"echo $DEVICE; head -c 3 /dev/example0 | grep -c -a '' ; cat /driver/file")
		if want := "GPU-1\n1\nof the host"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("device that CDI does not know", func(t *testing.T) {
		_, err := b.start(t, container.Spec{Devices: container.Devices{GPUs: []string{"GPU-1"}, Kind: "example.test/none"}}, "true")
		if _, ok := errors.AsType[*container.DeviceError](err); !ok || !strings.Contains(err.Error(), "example.test/none=GPU-1") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		if _, err := b.start(t, container.Spec{Mounts: []container.Mount{{Source: "/nosuch", Target: "/d"}}}, "true"); err == nil {
			t.Error("there is no error")
		}
	})
}

func TestImages(t *testing.T) {
	b := newBed(t)
	small := testimage.Busybox(t)
	t.Run("archives", func(t *testing.T) {
		for _, file := range []string{"image.tar", "image.tar.gz", "image.tar.zst"} {
			image := b.load(t, small.Archive(t, file), "gangrun.local/archive:"+strings.TrimPrefix(file, "image."))
			if image.Digest == "" || image.Platform != "linux/amd64" || image.Bytes == 0 || image.Config.Env[1] != "FROM_IMAGE=yes" {
				t.Errorf("%s: %+v", file, image)
			}
			found, err := b.runtime.Find(t.Context(), image.Name)
			if err != nil || found.Digest != image.Digest || found.Namespace != container.Namespace {
				t.Errorf("%s: found %+v, %v", file, found, err)
			}
			if err := b.runtime.Remove(t.Context(), image.Name); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("missing", func(t *testing.T) {
		_, err := b.runtime.Find(t.Context(), "docker.io/library/nosuch:1")
		if _, ok := errors.AsType[*container.MissingError](err); !ok {
			t.Errorf("got %v", err)
		}
	})
	t.Run("other machines", func(t *testing.T) {
		other := small
		other.Arch = "riscv64"
		data, err := os.ReadFile(other.Archive(t, "image.tar"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.runtime.Import(t.Context(), "gangrun.local/other:1", bytes.NewReader(data))
		if e, ok := errors.AsType[*container.PlatformError](err); !ok || e.Want != "linux/amd64" || len(e.Has) != 1 || e.Has[0] != "linux/riscv64" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("truncated", func(t *testing.T) {
		data, err := os.ReadFile(small.Archive(t, "image.tar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 10, 600, len(data) / 2} {
			_, err := b.runtime.Import(t.Context(), "gangrun.local/half:1", bytes.NewReader(data[:size]))
			if _, ok := errors.AsType[*container.BrokenError](err); !ok {
				t.Errorf("%d bytes: got %v", size, err)
			}
		}
	})
	t.Run("no archive", func(t *testing.T) {
		_, err := b.runtime.Import(t.Context(), "gangrun.local/no:1", strings.NewReader(strings.Repeat("no archive at all\n", 1000)))
		if _, ok := errors.AsType[*container.BrokenError](err); !ok {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a reader that fails", func(t *testing.T) {
		broken := errors.New("the line broke")
		_, err := b.runtime.Import(t.Context(), "gangrun.local/half:1", failing{broken})
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestFullName(t *testing.T) {
	for ref, want := range map[string]string{
		"ubuntu": "docker.io/library/ubuntu:latest", "ubuntu:24.04": "docker.io/library/ubuntu:24.04", "me/train": "docker.io/me/train:latest",
		"example.test:5000/a/b:1": "example.test:5000/a/b:1", "Upper": "", "a b": "",
	} {
		got, err := container.FullName(ref)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v", ref, got, err)
		}
	}
}
