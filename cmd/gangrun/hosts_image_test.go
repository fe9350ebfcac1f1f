package main_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testimage"
)

// imageFlags returns the flags of a job in an image. The image has nothing: the programs of the hosts are
// mounted.
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

// imagePrograms are the farPrograms in containers.
func imagePrograms() []farProgram {
	programs := slices.Clone(farPrograms)
	for i := range programs {
		programs[i].name += " in containers"
		programs[i].image = true
	}
	return programs
}

// imageFaults happen to the containers of h2.
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

// noContainers waits until nothing of containers is left on the hosts of a bed that are on. A host whose
// containerd could not remove a container gets it removed by the next job.
func noContainers(t testing.TB, bed *testhosts.Bed) {
	t.Helper()
	for _, h := range bed.Hosts() {
		if h.Init() == 0 {
			continue
		}
		var left []string
		var err error
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if left, err = h.ContainersLeft(); err == nil && len(left) == 0 {
				break
			}
		}
		if err != nil || len(left) > 0 {
			t.Errorf("left on %s: %s %v", h.Name(), strings.Join(left, ", "), err)
		}
	}
}

// TestImageHosts has faults happen to gangs in containers on several hosts.
func TestImageHosts(t *testing.T) {
	t.Parallel()
	programs := imagePrograms()
	for name, program := range map[string]farProgram{
		"cut for 5 s": programs[1], "agent killed": programs[0], "controller killed, then gangrun attach": programs[2],
		"host killed": programs[0], "shims killed": programs[0], "containerd killed and started again": programs[1],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := slices.Concat(hostFaults, imageFaults)
			f := all[slices.IndexFunc(all, func(f hostFault) bool { return f.name == name })]
			f.try(t, program, patiently)
		})
	}
}
