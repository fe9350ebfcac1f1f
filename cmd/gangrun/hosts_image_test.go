package main_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testimage"
)

// imageFlags returns the flags of a job in an image. The image has no programs. The job mounts those of the hosts.
func imageFlags(t testing.TB, bed *testhosts.Bed) []string {
	t.Helper()
	empty := testimage.Image{Links: map[string]string{}}
	flags := []string{"--mount", "/usr", "--mount", "/etc", "--mount", bed.Shared() + ":rw"}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if to, err := os.Readlink(dir); err == nil {
			empty.Links[dir] = to
		} else if _, err := os.Stat(dir); err == nil {
			flags = append(flags, "--mount", dir)
		}
	}
	return append(flags, "--image", empty.Archive(t, "image.tar"))
}

// imagePrograms returns the farPrograms, to be run in containers.
func imagePrograms() []farProgram {
	programs := slices.Clone(farPrograms)
	for i := range programs {
		programs[i].name += " in containers"
		programs[i].image = true
	}
	return programs
}

// imageFaults are faults of the containers on h2.
var imageFaults = []hostFault{{
	name: "containerd killed", goesOn: true, next: true, while: to((*testhosts.Host).KillContainerd),
	after: from((*testhosts.Host).StartContainerd),
}, {
	name: "containerd killed and started again", goesOn: true,
	while: func(r *farRun) (time.Time, error) {
		at := time.Now()
		return at, errors.Join(victim(r.bed).KillContainerd(), victim(r.bed).StartContainerd())
	},
}, {
	name: "shims killed", while: to((*testhosts.Host).KillShims),
	code: 75, cause: job.HostLost, signature: "container-ended", text: "h2",
}, {
	name: "agent in the container killed", while: to(killInner),
	code: 75, cause: job.HostLost, signature: "container-ended", text: "h2",
}}

// innerProgram is the path of gangrun in a container.
const innerProgram = "/.gangrun/gangrun"

// killInner kills the agent in a container of a host.
func killInner(h *testhosts.Host) error {
	all, err := h.Processes("")
	for _, p := range all {
		if err == nil && len(p.Args) == 4 && p.Args[0] == innerProgram && p.Args[3] == "worker" {
			return syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	return errors.Join(err, errors.New("no agent in a container"))
}

// noContainers waits until nothing of the containers is left on the hosts of a bed that are running. If containerd on
// a host could not remove a container, the next job on that host removes it.
func noContainers(t testing.TB, bed *testhosts.Bed) {
	t.Helper()
	for _, h := range bed.Hosts() {
		if h.Init() == 0 {
			continue
		}
		var left []string
		var err error
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			if left, err = h.ContainersLeft(); err == nil && len(left) == 0 {
				break
			}
		}
		if err != nil || len(left) > 0 {
			t.Errorf("left on %s: %s %v", h.Name(), strings.Join(left, ", "), err)
		}
	}
}

// TestImageHosts runs gangs in containers on several hosts, and makes some of the faults happen. TestSoakImageFaults
// tries all of them.
func TestImageHosts(t *testing.T) {
	t.Parallel()
	programs := imagePrograms()
	for name, program := range map[string]farProgram{
		"controller killed, then gangrun attach": programs[2], "host killed": programs[0], "shims killed": programs[1],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := slices.Concat(hostFaults, imageFaults)
			f := all[slices.IndexFunc(all, func(f hostFault) bool { return f.name == name })]
			f.try(t, program, patiently)
		})
	}
}

// TestImageOnHosts runs jobs on hosts that differ in their images, users and disks. The preflight must say what is
// wrong, and on which host.
func TestImageOnHosts(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2, testhosts.Containerd())
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	one, other, large := testimage.Busybox(t), testimage.Busybox(t), testimage.Busybox(t)
	other.Config.Env = append(other.Config.Env, "OTHER=1")
	noise := make([]byte, 48<<20)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise)
	large.Files["/noise"] = noise
	largeArchive := large.Archive(t, "image.tar")
	load := func(host int, image testimage.Image, name string) {
		t.Helper()
		image.Name = "127.0.0.1:1/" + name + ":1"
		data, err := os.ReadFile(image.Archive(t, "image.tar"))
		archive := filepath.Join(bed.Shared(), fmt.Sprintf("h%d-%s.tar", host, name))
		if err := errors.Join(err, os.WriteFile(archive, data, 0o644)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if out, err := bed.Host(host).Exec(ctx, "ctr", "images", "import", archive); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	load(1, one, "single")
	load(1, one, "pair")
	load(2, other, "pair")
	for _, c := range []struct {
		what, image, user, says string
		before, after           func(h *testhosts.Host) error
		while                   func(h *testhosts.Host) error // is called while the image is being sent
		code                    int
		brief                   bool // the rest of the line varies
	}{
		{what: "one of the hosts lacks the image", image: "127.0.0.1:1/single:1", code: 78, says: "127.0.0.1:1/single:1"},
		{what: "a host has another image under the same name", image: "127.0.0.1:1/pair:1", code: 78, says: "image-same"},
		{what: "the user may not open containerd's socket", image: one.Archive(t, "image.tar"), user: "alice", code: 78, says: "this user may not open containerd's socket"},
		{what: "the disk of a host is full", image: largeArchive, code: 65, says: "no room for the image",
			before: smallStore, after: func(h *testhosts.Host) error {
				return errors.Join(h.KillContainerd(), inHost(h, "umount", store), h.StartContainerd())
			}},
		{what: "the connection breaks while the archive is sent", image: largeArchive, code: 69, says: "not reached, and left out", brief: true,
			before: func(h *testhosts.Host) error { return h.Rate("20mbit") }, after: func(h *testhosts.Host) error { return errors.Join(h.Rate(""), h.StartSSH()) },
			while: (*testhosts.Host).StopSSH},
		{what: "the connection breaks for a moment while the archive is sent", image: largeArchive, says: "every rank ended well",
			before: func(h *testhosts.Host) error { return h.Rate("100mbit") }, after: func(h *testhosts.Host) error { return h.Rate("") },
			while: func(h *testhosts.Host) error { return errors.Join(h.StopSSH(), h.StartSSH()) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &farRun{t: t, bed: bed, gangrun: gangrun, begun: time.Now()}
			r.change(c.before)
			loginAs(t, bed, c.user)
			r.control("run", "--hosts", "h1:1,h2:1", "-n", "2", "--retries", "0", "--host-timeout", "6s", "--image", c.image, "--", "true")
			if c.while != nil {
				r.await("the transfer", func() bool { return strings.Contains(r.errs.String(), "sending the image") })
				r.change(c.while)
			}
			code := r.finish()
			r.change(c.after)
			said := r.errs.String()
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("code %d, want %d and %q:\n%s", code, c.code, c.says, said)
			}
			r.nothingLeft()
			noContainers(t, bed)
			line := lineWith(said, c.says)
			if c.brief {
				line = c.says
			}
			imageEndings.row(t, c.what, line, fmt.Sprint(code), "0")
		})
	}
}

// store is the directory in which containerd of a host keeps images and snapshots.
const store = "/srv/containerd"

// smallStore gives a host a store that is too small for the large image.
func smallStore(h *testhosts.Host) error {
	return errors.Join(h.KillContainerd(), inHost(h, "mount", "-t", "tmpfs", "-o", "size=24m", "small", store), h.StartContainerd())
}

func inHost(h *testhosts.Host, argv ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := h.Exec(ctx, argv...)
	return err
}

// change calls do with the victim, unless do is nil.
func (r *farRun) change(do func(h *testhosts.Host) error) {
	r.t.Helper()
	if do == nil {
		return
	}
	if err := do(victim(r.bed)); err != nil {
		r.t.Fatal(err)
	}
}
