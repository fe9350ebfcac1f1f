package main_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testcontainerd"
	"github.com/gangrun/gangrun/internal/testimage"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// imageBench is a bench with a containerd of its own.
type imageBench struct {
	*bench
	daemon *testcontainerd.Daemon
	image  string // path of the archive of an image
}

func newImageBench(t *testing.T) imageBench {
	t.Helper()
	b := imageBench{bench: newBench(t), daemon: testcontainerd.Start(t)}
	b.env = append(b.env, "CONTAINERD_ADDRESS="+b.daemon.Socket)
	b.image = testimage.Busybox(t).Archive(t, "image.tar")
	return b
}

// nothingLeft fails the test if anything of the containers is left after a while.
func (b imageBench) nothingLeft() {
	b.t.Helper()
	left := func() []string {
		dirs, _ := filepath.Glob(filepath.Join(b.dir, "tmp/gangrun-box-*"))
		return append(b.daemon.Left(), dirs...)
	}
	for deadline := time.Now().Add(patience); len(left()) > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	if now := left(); len(now) > 0 {
		b.t.Errorf("left behind:\n%s", strings.Join(now, "\n"))
	}
}

// run runs a job in the image. It returns the exit code and the output.
func (b imageBench) run(args ...string) (code int, said string) {
	b.t.Helper()
	return b.ends(b.command(append([]string{"run", "--image", b.image, "--output", "all"}, args...)...))
}

func TestImage(t *testing.T) {
	t.Parallel()
	b := newImageBench(t)
	t.Run("archive", func(t *testing.T) {
		code, said := b.run("-n", "4", "--loopback", "2", "--", "sh", "-c", "echo rank $RANK on $GANGRUN_RANK of $WORLD_SIZE: $FROM_IMAGE; test -e /etc/passwd || echo no file of the host")
		if code != 0 || strings.Count(said, "of 4: yes") != 4 || strings.Count(said, "]  no file of the host") != 4 {
			t.Fatalf("code %d:\n%s", code, said)
		}
		if !strings.Contains(said, "sending the image") {
			t.Errorf("it says nothing of the image:\n%s", said)
		}
		if _, said = b.run("-n", "1", "--", "true"); strings.Contains(said, "sending the image") {
			t.Errorf("the image is sent again:\n%s", said)
		}
		b.nothingLeft()
	})
	t.Run("exit code", func(t *testing.T) {
		if code, said := b.run("-n", "2", "--retries", "0", "--preflight", "off", "--", "sh", "-c", "exit $((7 * RANK))"); code != 7 {
			t.Errorf("code %d:\n%s", code, said)
		}
	})
	t.Run("trial", func(t *testing.T) {
		dir := filepath.Join(b.dir, "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		code, said := b.run("-n", "2", "--mount", dir+":/data:rw", "--", "sh", "-c", "test ! -e /data/new.$RANK || echo seen; echo $GANGRUN_ATTEMPT > /data/new.$RANK")
		data, err := os.ReadFile(filepath.Join(dir, "new.0"))
		if code != 0 || err != nil || string(data) != "1\n" || strings.Contains(said, "]  seen") {
			t.Errorf("code %d, %q, %v:\n%s", code, data, err, said)
		}
		b.nothingLeft()
	})
	t.Run("heartbeats", func(t *testing.T) {
		code, said := b.run("-n", "2", "--preflight", "off", "--progress", `at (?P<step>\d+)`, "--", "sh", "-c",
			`echo at 5; echo "gangrun: progress 7 total=9" >&$GANGRUN_PROGRESS_FD && touch "$GANGRUN_HEARTBEAT" && echo at 90`)
		if code != 0 || !strings.Contains(said, "reached  step 7/9\n") {
			t.Errorf("code %d:\n%s", code, said)
		}
		b.nothingLeft()
	})
	t.Run("checkpoints", func(t *testing.T) {
		code, said := b.run("-n", "2", "--preflight", "off", "--checkpoint-dir", "ck", "--", "sh", "-c", `
step=0; test -z "$GANGRUN_RESUME_FROM" || { step=${GANGRUN_RESUME_FROM##*step_}; step=${step%.json}; echo resumed at $step; }
while test $step -lt 6; do
	step=$((step + 1)); echo step $step/6
	test $RANK = 1 || { echo {} > $GANGRUN_CHECKPOINT_DIR/.new; mv $GANGRUN_CHECKPOINT_DIR/.new $GANGRUN_CHECKPOINT_DIR/step_$step.json; }
	test $step.$RANK.$GANGRUN_ATTEMPT != 4.0.1 || kill -9 $$
done`)
		if code != 0 || !strings.Contains(said, "resumed at ") || !strings.Contains(said, "besides what --mount names: "+filepath.Join(b.dir, "ck")+":rw\n") {
			t.Errorf("code %d:\n%s", code, said)
		}
		var report runreport.Report
		decode(t, b.ask("report", "-o", "json"), &report)
		if len(report.Attempts) != 2 || report.Attempts[0].Cause == nil || report.Attempts[0].Cause.Category != job.Killed {
			t.Errorf("%+v", report.Attempts)
		}
		b.nothingLeft()
	})
	t.Run("entry point and user", func(t *testing.T) {
		i := testimage.Busybox(t)
		i.Files["/entry"] = []byte("#!/bin/sh\necho entered\nexec \"$@\"\n")
		i.Config.Entrypoint, i.Config.User, i.Config.WorkingDir = []string{"/entry"}, "4711:4712", "/start"
		with := b
		with.bench = &bench{t: t, binary: b.binary, dir: b.dir, mark: b.mark, env: b.env}
		with.image = i.Archive(t, "image.tar.zst")
		code, said := with.run("-n", "1", "--container-user", "image", "--preflight", "off", "--", "sh", "-c", "id -u; id -g; pwd")
		for _, want := range []string{"entered", "4711", "4712", "/start"} {
			if !strings.Contains(said, want+"\n") {
				t.Errorf("code %d, no %q:\n%s", code, want, said)
			}
		}
	})
	t.Run("layout", func(t *testing.T) {
		with := b
		with.image = testimage.Busybox(t).Layout(t)
		if code, said := with.run("-n", "1", "--", "echo", "from a layout"); code != 0 || !strings.Contains(said, "from a layout\n") {
			t.Errorf("code %d:\n%s", code, said)
		}
	})
	t.Run("registry", func(t *testing.T) {
		host := testimage.Registry(t, "me", "hidden-secret")
		with := b
		with.image = testimage.Busybox(t).Push(t, host, "team/image:1", "me", "hidden-secret")
		code, said := with.run("-n", "1", "--", "echo", "pulled")
		if code != 78 || !strings.Contains(said, "the registry refuses to give out the image") {
			t.Errorf("code %d:\n%s", code, said)
		}
		config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("me:hidden-secret")))
		if err := os.WriteFile(filepath.Join(b.dir, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		with.bench = &bench{t: t, binary: b.binary, dir: b.dir, mark: b.mark, env: append(b.env[:len(b.env):len(b.env)], "HOME="+b.dir, "DOCKER_CONFIG="+b.dir)}
		if code, said := with.run("-n", "1", "--", "echo", "pulled"); code != 0 || !strings.Contains(said, "]  pulled\n") {
			t.Errorf("code %d:\n%s", code, said)
		}
		found := exec.Command("grep", "-rl", "hidden-secret", filepath.Join(b.dir, "home"))
		if out, _ := found.Output(); len(out) > 0 {
			t.Errorf("the secret is in %s", out)
		}
	})
	t.Run("standard input", func(t *testing.T) {
		cmd := b.command("run", "--image", b.image, "-n", "2", "--preflight", "off", "--", "cat")
		cmd.Stdin = strings.NewReader("for rank 0\n")
		if code, said := b.ends(cmd); code != 0 || !strings.Contains(said, "for rank 0\n") {
			t.Errorf("code %d:\n%s", code, said)
		}
	})
	t.Run("network", func(t *testing.T) {
		host, err := os.Readlink("/proc/self/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		for network, want := range map[string]int{"host": 1, "none": 0} {
			_, said := b.run("-n", "1", "--preflight", "off", "--container-network", network, "--", "sh", "-c", "ls -l /proc/self/ns/net")
			if strings.Count(said, host) != want {
				t.Errorf("%s:\n%s", network, said)
			}
		}
	})
}

// TestImageRefused runs jobs that cannot run in their image. The preflight must say why.
func TestImageRefused(t *testing.T) {
	t.Parallel()
	b := newImageBench(t)
	script := filepath.Base(b.create("script.sh").Name())
	archive, err := os.ReadFile(b.image)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(b.dir, "half.tar")
	if err := errors.Join(os.WriteFile(half, archive[:len(archive)/2], 0o600), os.Mkdir(filepath.Join(b.dir, "bin"), 0o700),
		os.WriteFile(filepath.Join(b.dir, "bin/gpus.xml"), twoGPUs(t), 0o600)); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(b.dir, "bin/nvidia-smi"), []byte(simulatedDriver))
	registry := testimage.Registry(t, "me", "hidden-secret")
	other, entry, bare, nobody := testimage.Busybox(t), testimage.Busybox(t), testimage.Busybox(t), testimage.Busybox(t)
	other.Arch = "riscv64"
	entry.Config.Entrypoint = []string{"/nosuch"}
	nobody.Config.User = "nosuch"
	bare.Links = map[string]string{"/bin/true": "/bin/busybox"}
	for what, c := range map[string]struct {
		image string
		args  []string
		env   string
		code  int
		says  string
	}{
		"the registry cannot be reached":                  {image: "127.0.0.1:1/nosuch:1", code: 78, says: "the image 127.0.0.1:1/nosuch:1 is not in the store of this host, and cannot be pulled"},
		"neither the host nor the registry has the image": {image: testimage.Registry(t, "", "") + "/nosuch:1", code: 65, says: "neither this host nor the registry has the image"},
		"the registry refuses":                            {image: testimage.Busybox(t).Push(t, registry, "team/image:1", "me", "hidden-secret"), code: 78, says: "the registry refuses to give out the image"},
		"the reference is not valid":                      {image: "No Such", code: 64, says: "is not a reference to an image"},
		"there is no such archive":                        {image: "./nosuch.tar", code: 64, says: "cannot read the image"},
		"the file is not an archive":                      {image: filepath.Join(b.dir, script) + "/../script.sh", code: 65, says: "the archive is not a complete image"},
		"the archive is truncated":                        {image: half, code: 65, says: "the archive is not a complete image"},
		"the image is for other machines":                 {image: other.Archive(t, "image.tar"), code: 65, says: "linux/riscv64"},
		"there is no containerd":                          {env: "CONTAINERD_ADDRESS=/nosuch", code: 78, says: "there is no containerd here: /nosuch does not exist"},
		"CDI does not know the GPUs":                      {env: "PATH=" + filepath.Join(b.dir, "bin") + ":" + os.Getenv("PATH"), args: []string{"--gpus-per-rank", "1", "--gpu-kind", "vendor.test/gpu", "--", "true"}, code: 78, says: "the Container Device Interface cannot give the container"},
		"the script is not mounted":                       {args: []string{"--", "./script.sh"}, code: 65, says: "exists on the host, but not in the container"},
		"`--trial uncontained`":                           {args: []string{"--trial", "uncontained", "--", "true"}, code: 64, says: "it cannot be uncontained"},
		"the source of a mount does not exist":            {args: []string{"--mount", "/nosuch", "--", "true"}, code: 65, says: "cannot mount /nosuch"},
		"the image does not have the working directory":   {args: []string{"--container-workdir", "/nosuch", "--", "true"}, code: 65, says: `the working directory "/nosuch" does not exist`},
		"the checkpoint directory is mounted read-only":   {args: []string{"--mount", filepath.Join(b.dir, "tmp") + ":" + filepath.Join(b.dir, "ck"), "--checkpoint-dir", "ck", "--", "true"}, code: 65, says: "is read-only in the container: the job mounts"},
		"a mount is inside another that is read-only":     {args: []string{"--mount", filepath.Join(b.dir, "tmp") + ":" + filepath.Join(b.dir, "ck"), "--checkpoint-dir", "ck/in", "--", "true"}, code: 65, says: "the mount around it"},
		"the image does not have the program":             {args: []string{"--", "nosuch"}, code: 78, says: `the program "nosuch" does not exist`},
		"the entry point of the image does not exist":     {image: entry.Archive(t, "image.tar"), code: 78, says: `the entry point "/nosuch" of the image cannot be executed`},
		"the image does not have its user":                {image: nobody.Archive(t, "image.tar"), args: []string{"--container-user", "image", "--", "true"}, code: 78, says: `the image is to run as the user "nosuch"`},
		"the image has no shell, and the ranks need none": {image: bare.Archive(t, "image.tar"), says: "every rank ended well"},
	} {
		t.Run(what, func(t *testing.T) {
			if c.args == nil {
				c.args = []string{"--", "true"}
			}
			with := b
			with.bench = &bench{t: t, binary: b.binary, dir: b.dir, mark: b.mark, env: append(b.env[:len(b.env):len(b.env)], c.env)}
			if c.image != "" {
				with.image = c.image
			}
			code, said := with.run(append([]string{"-n", "2"}, c.args...)...)
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("code %d, want %d and %q:\n%s", code, c.code, c.says, said)
			}
			with.nothingLeft()
			imageEndings.row(t, what, lineWith(said, c.says, b.dir, "DIR", registry, "REGISTRY"), fmt.Sprint(code), "0")
		})
	}
}
